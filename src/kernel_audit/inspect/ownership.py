"""Which blocks of a result the programs write, and how often a block moves: one pass over the grid, or none.

The rule of a Pallas TPU pipeline: programs run in order, the last axis of the grid fastest; a block moves when its index
changes between consecutive programs. What an author declares "parallel" may run in any order or on several cores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_audit.inspect import affine
from kernel_audit.inspect.equation import Mapping, bytes_of
from kernel_audit.inspect.index_map import affine_indices, block_indices, driving_axes, open_axes, reads_prefetched
from kernel_audit.inspect.integers import NotInteger
from kernel_audit.records import Ownership

ENUMERATED_POINTS = 1_000_000


@dataclass(frozen=True)
class Visits:
    """How the programs of a grid meet the blocks of one mapping. Counts are None where `proof` cannot give them.

    `copies` blocks move; `clipped_elements` is the part of them inside the array, `floor_elements` that of each visited
    block once; neither is known of a map that leaves the array. `linear` is the block of each program in order (-1
    outside), where every program was looked at.
    """

    proof: str
    uncovered: int | None = None
    repeated: int | None = None
    revisited: int | None = None
    out_of_range: int | None = None
    shared_parallel: int | None = None
    copies: int | None = None
    clipped_elements: int | None = None
    floor_elements: int | None = None
    linear: np.ndarray | None = None

    def ownership(self, mapping: Mapping) -> Ownership:
        return Ownership(
            blocks=math.prod(mapping.counts),
            uncovered=self.uncovered,
            repeated=self.repeated,
            revisited=self.revisited,
            out_of_range=self.out_of_range,
            shared_parallel=self.shared_parallel,
            proof=self.proof,
        )


def visits(
    mapping: Mapping,
    grid: Sequence[int | None],
    semantics: Sequence[str] = (),
    prefetched: Sequence[Any] | None = None,
) -> Visits:
    """The visits of a mapping. `prefetched` are the values of prefetched operands, where they are known."""
    if not mapping.piped:
        return Visits(proof="whole-array")
    sizes = [each for each in grid if each is not None]
    if len(sizes) < len(grid) or (prefetched is None and reads_prefetched(mapping, len(grid))):
        return Visits(proof="data-dependent")
    if math.prod(sizes) == 0 or (not math.prod(mapping.counts) and not mapping.by_element):
        return _none(mapping)
    try:
        if math.prod(sizes) <= ENUMERATED_POINTS:
            return enumerated(mapping, sizes, semantics, prefetched or ())
        return _beyond(mapping, sizes, semantics, prefetched or ())
    except NotInteger:
        return Visits(proof="not-read")


def _none(mapping: Mapping) -> Visits:
    return Visits("enumerated", math.prod(mapping.counts), 0, 0, 0, 0, 0, 0, 0, np.zeros(0, np.int64))


def _beyond(mapping: Mapping, grid: list[int], semantics: Sequence[str], prefetched: Sequence[Any]) -> Visits:
    """A grid too large to look at every point: fewer points say the same, or affine maps, or only some are looked at."""
    forms = affine_indices(mapping, len(grid))
    if all(each is not None for each in forms) and not mapping.by_element:
        proved = affine.proved(mapping, [each for each in forms if each is not None], grid, semantics)
        if proved is not None:
            return Visits(**proved)
    axes = driving_axes(mapping, len(grid))
    fewer = [size if axis in axes else min(size, 2) for axis, size in enumerate(grid)]
    if math.prod(fewer) <= ENUMERATED_POINTS:  # an axis that no index uses repeats the same blocks: two of it show all
        found = enumerated(mapping, fewer, semantics, prefetched)
        scale = math.prod(size for axis, size in enumerate(grid) if axis not in axes)
        shown = math.prod(size for axis, size in enumerate(fewer) if axis not in axes)
        outside = None if found.out_of_range is None else found.out_of_range * scale // shown
        return Visits(
            proof="enumerated",
            uncovered=found.uncovered,
            repeated=found.repeated,
            revisited=found.revisited,
            out_of_range=outside,
            shared_parallel=found.shared_parallel,
            floor_elements=found.floor_elements,
        )
    return _sampled(mapping, grid, prefetched)


def _sampled(mapping: Mapping, grid: list[int], prefetched: Sequence[Any]) -> Visits:
    """The first and the last points of the grid: enough to see an index out of range, and nothing else for certain."""
    half, total = ENUMERATED_POINTS // 2, math.prod(grid)
    points = np.concatenate([np.arange(half), np.arange(total - half, total)])
    axes: list[np.ndarray] = []
    for size in reversed(grid):
        axes.append((points % size).astype(np.int32))
        points = points // size
    indices = block_indices(mapping, axes[::-1], prefetched)
    outside = _outside(mapping, indices)
    return Visits(proof="sampled", out_of_range=int(np.count_nonzero(outside)))


def _outside(mapping: Mapping, indices: Sequence[np.ndarray]) -> np.ndarray:
    outside = np.zeros((), bool)
    for index, count in zip(indices, mapping.counts, strict=True):
        outside = outside | ((index < 0) | (index >= count))
    return outside


def enumerated(
    mapping: Mapping, grid: Sequence[int], semantics: Sequence[str], prefetched: Sequence[Any] = ()
) -> Visits:
    """Every grid point looked at."""
    indices = [np.asarray(each, np.int64) for each in block_indices(mapping, open_axes(grid), prefetched)]
    aligned = _in_blocks(mapping, indices)
    counts, in_blocks = aligned if aligned is not None else (mapping.counts, indices)
    total = math.prod(counts)
    linear = np.zeros((), np.int64)
    for index, count in zip(in_blocks, counts, strict=True):
        linear = linear * count + index
    linear = np.broadcast_to(linear, tuple(grid)).reshape(-1)
    outside = _count_outside(mapping, indices, grid)
    if outside:
        linear = np.where(np.broadcast_to(_outside(mapping, indices), tuple(grid)).reshape(-1), -1, linear)
    moves = np.empty(linear.size, bool)
    moves[0] = True
    np.not_equal(linear[1:], linear[:-1], out=moves[1:])
    copies = int(np.count_nonzero(moves))
    sequence = linear if copies == linear.size else linear[moves]
    visited, runs = _counted(sequence[sequence >= 0] if outside else sequence, total)
    found: dict[str, Any] = {"copies": None if outside else copies, "out_of_range": outside, "linear": linear}
    if not outside:
        found.update(_elements(mapping, counts, visited, runs, aligned is not None))
    if aligned is None:  # blocks that overlap: which elements are covered is not said in blocks
        return Visits(proof="enumerated", **found)
    times = runs
    if copies < linear.size:
        _, times = _counted(linear[linear >= 0] if outside else linear, total)
    return Visits(
        proof="enumerated",
        uncovered=total - visited.size,
        repeated=int(np.count_nonzero(times > 1)),
        revisited=int(np.count_nonzero(runs > 1)),
        shared_parallel=_shared(linear, tuple(grid), semantics) if visited.size < linear.size else 0,
        **found,
    )


def _count_outside(mapping: Mapping, indices: Sequence[np.ndarray], grid: Sequence[int]) -> int:
    """Programs whose block is outside; each index is looked at where it varies, which is mostly along one axis."""
    within = all(
        not index.size or (index.min() >= 0 and index.max() < count)
        for index, count in zip(indices, mapping.counts, strict=True)
    )
    if within:
        return 0
    return int(np.count_nonzero(np.broadcast_to(_outside(mapping, indices), tuple(grid))))


def _counted(values: np.ndarray, total: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values in order and how often each occurs."""
    if total <= 4 * values.size + 1024:
        times = np.bincount(values, minlength=total)
        visited = np.flatnonzero(times)
        return visited, times[visited]
    return np.unique(values, return_counts=True)


def _in_blocks(mapping: Mapping, indices: list[np.ndarray]) -> tuple[tuple[int, ...], list[np.ndarray]] | None:
    """Counts and indices in whole blocks; dimensions counted in elements where every start is a multiple of the block."""
    counts, found = [], []
    for dim, extent, index in zip(mapping.dims, mapping.shape, indices, strict=True):
        if dim.kind not in ("element", "bounded-slice"):
            counts.append(-(-extent // dim.size))
            found.append(index)
        elif dim.kind == "element" and not np.any(index % dim.size):
            counts.append(-(-extent // dim.size))
            found.append(index // dim.size)
        else:
            return None
    return tuple(counts), found


def _elements(
    mapping: Mapping, counts: Sequence[int], visited: np.ndarray, runs: np.ndarray, in_blocks: bool
) -> dict[str, int]:
    """Elements inside the array: over all copies, and of each visited block once."""
    if any(each.kind == "bounded-slice" for each in mapping.dims):
        return {}
    if all(extent % dim.size == 0 for dim, extent in zip(mapping.dims, mapping.shape, strict=True)) and in_blocks:
        size = math.prod(mapping.block)
        return {"clipped_elements": size * int(runs.sum()), "floor_elements": size * visited.size}
    sizes = np.ones(visited.size, np.int64)
    rest = visited
    for dim, extent, count in reversed(list(zip(mapping.dims, mapping.shape, counts, strict=True))):
        index, rest = rest % count, rest // count
        start = index * dim.size if in_blocks or dim.kind != "element" else index
        sizes *= np.clip(extent - start, 0, dim.size)
    return {"clipped_elements": int((sizes * runs).sum()), "floor_elements": int(sizes.sum())}


def _shared(linear: np.ndarray, grid: tuple[int, ...], semantics: Sequence[str]) -> int:
    """Blocks that programs write which differ along an axis declared parallel."""
    inside = linear >= 0
    blocks, which = np.unique(linear[inside], return_inverse=True)
    shared = np.zeros(blocks.size, bool)
    for axis, meaning in enumerate(semantics):
        if "parallel" not in meaning or grid[axis] < 2:
            continue
        along = np.broadcast_to(open_axes(grid)[axis], grid).ravel()[inside]
        lowest = np.full(blocks.size, grid[axis], np.int64)
        highest = np.full(blocks.size, -1, np.int64)
        np.minimum.at(lowest, which, along)
        np.maximum.at(highest, which, along)
        shared |= highest > lowest
    return int(np.count_nonzero(shared))


def moved_bytes(mapping: Mapping, found: Visits) -> tuple[int | None, int | None, int | None]:
    """(moved in whole blocks, clipped, floor) in bytes."""
    moved = None if found.copies is None else found.copies * mapping.block_bytes
    clipped = None if found.clipped_elements is None else bytes_of(found.clipped_elements, mapping.dtype)
    floor = None if found.floor_elements is None else bytes_of(found.floor_elements, mapping.dtype)
    return moved, clipped, floor
