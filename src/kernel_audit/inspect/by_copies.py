"""Ownership and bytes of a kernel that copies by itself, from the copies that its control makes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kernel_audit.inspect.control import Copied
from kernel_audit.inspect.equation import Mapping, bytes_of
from kernel_audit.inspect.ownership import Visits


def visits_by_copies(mapping: Mapping, copies: Sequence[Copied]) -> tuple[Visits, tuple[int, ...], int]:
    """(visits, block shape, bytes moved) of one operand or result that lies in main memory.

    The block is the largest window that is copied; windows must start at whole blocks for coverage to be told.
    """
    own = [each for each in copies if each.label == (mapping.role, mapping.position)]
    moved = sum(each.bytes for each in own)
    if not own:
        nothing = math.prod(mapping.shape) and 1
        return Visits("copies", uncovered=nothing, repeated=0, revisited=0, out_of_range=0, copies=0), mapping.shape, 0
    block = tuple(max(each.sizes[dim] for each in own) for dim in range(len(mapping.shape)))
    if any(each.starts is None for each in own):
        return Visits("data-dependent", copies=len(own)), block, moved
    starts = np.array([each.starts for each in own], np.int64).reshape(len(own), len(block))
    extent, size = np.array(mapping.shape, np.int64), np.array(block, np.int64)
    outside = ((starts < 0) | (starts >= extent)).any(axis=1)
    clipped = int(np.clip(np.minimum(extent - starts, _sizes(own)), 0, None).prod(axis=1).sum())
    if (starts % size).any():
        found = Visits("copies", out_of_range=int(outside.sum()), copies=len(own), clipped_elements=clipped)
        return found, block, moved
    counts = -(-extent // size)
    linear = (
        np.ravel_multi_index(tuple((starts // size)[~outside].T), tuple(counts)) if len(block) else np.zeros(len(own))
    )
    visited, times = np.unique(linear, return_counts=True)
    changes = np.ones(linear.size, bool)
    changes[1:] = linear[1:] != linear[:-1]
    _, runs = np.unique(linear[changes], return_counts=True)
    floor = _elements(visited, counts, extent, size)
    found = Visits(
        proof="copies",
        uncovered=int(counts.prod()) - visited.size,
        repeated=int((times > 1).sum()),
        revisited=int((runs > 1).sum()),
        out_of_range=int(outside.sum()),
        shared_parallel=0,
        copies=len(own),
        clipped_elements=clipped,
        floor_elements=floor,
        linear=linear,
    )
    return found, block, moved


def _sizes(copies: Sequence[Copied]) -> np.ndarray:
    return np.array([each.sizes for each in copies], np.int64).reshape(len(copies), -1)


def _elements(visited: np.ndarray, counts: np.ndarray, extent: np.ndarray, size: np.ndarray) -> int:
    if not len(size):
        return visited.size
    indices = np.array(np.unravel_index(visited, tuple(counts))).T
    return int(np.clip(extent - indices * size, 0, size).prod(axis=1).sum())


def bytes_by_copies(mapping: Mapping, found: Visits, moved: int) -> tuple[int | None, int | None, int | None]:
    """(moved, clipped, floor) in bytes."""
    clipped = None if found.clipped_elements is None else bytes_of(found.clipped_elements, mapping.dtype)
    floor = None if found.floor_elements is None else bytes_of(found.floor_elements, mapping.dtype)
    return moved, clipped, floor
