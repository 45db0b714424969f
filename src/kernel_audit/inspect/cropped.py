"""Blocks that nobody writes, counted where the program reads them: padding that is cropped later may stay as it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kernel_audit.inspect.equation import Mapping, blocks_along
from kernel_audit.inspect.ownership import Visits, visits

Part = tuple[tuple[int, ...], tuple[int, ...]]
MOST_BLOCKS = 1_000_000  # blocks of several parts that are looked at one by one


def uncovered_of_parts(
    mapping: Mapping,
    block: Sequence[int],
    found: Visits,
    grid: Sequence[int | None],
    parts: Sequence[Part | None] | None,
) -> int | None:
    """Blocks of a result that no program writes and the program reads; None where it is not known.

    `parts` are the read ones, None for all of the result; a part that is not known is None, too.
    """
    if not found.uncovered or parts is None:
        return found.uncovered
    known = [each for each in parts if each is not None]
    count = _of_parts(mapping, block, found, grid, known)
    return None if not count and len(known) < len(parts) else count


def _of_parts(
    mapping: Mapping, block: Sequence[int], found: Visits, grid: Sequence[int | None], parts: Sequence[Part]
) -> int | None:
    if found.linear is None:
        return _of_a_corner(mapping, grid, parts)
    counts = tuple(blocks_along(extent, size) for extent, size in zip(mapping.shape, block, strict=True))
    visited = np.unique(found.linear[found.linear >= 0])
    boxes = [
        [(low // size, blocks_along(high, size)) for low, high, size in zip(*part, block, strict=True)]
        for part in parts
        if all(low < high for low, high in zip(*part, strict=True))
    ]
    if len(boxes) == 1:
        indices = np.unravel_index(visited, counts)
        inside = [(each >= low) & (each < high) for each, (low, high) in zip(indices, boxes[0], strict=True)]
        written = int(np.count_nonzero(np.logical_and.reduce(inside))) if inside else visited.size
        return math.prod(high - low for low, high in boxes[0]) - written
    if sum(math.prod(high - low for low, high in box) for box in boxes) > MOST_BLOCKS:
        return None
    read = [np.ravel_multi_index(np.ix_(*[np.arange(*side) for side in box]), counts).ravel() for box in boxes]
    return int(np.setdiff1d(np.concatenate(read), visited).size) if read else 0


def _of_a_corner(mapping: Mapping, grid: Sequence[int | None], parts: Sequence[Part]) -> int | None:
    """Without the block of every program: of one part that starts where the result does, as if the result ended there."""
    if len(parts) != 1 or any(parts[0][0]) or not mapping.piped:
        return None
    return visits(replace(mapping, shape=parts[0][1]), grid).uncovered
