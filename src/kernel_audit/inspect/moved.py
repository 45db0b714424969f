"""What each operand and result of a kernel moves: by the grid where a pipeline moves it, by the kernel's own copies else."""

from __future__ import annotations

import math
from collections.abc import Mapping as Table
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from kernel_audit.inspect.body import whole_accesses
from kernel_audit.inspect.by_copies import visits_by_copies
from kernel_audit.inspect.control import CannotTell, Copied, TooLong, copies_by_hand, followed
from kernel_audit.inspect.cropped import Part, uncovered_of_parts
from kernel_audit.inspect.equation import KernelEquation, Mapping, blocks_along
from kernel_audit.inspect.index_map import index_text
from kernel_audit.inspect.ownership import Visits, moved_bytes, visits
from kernel_audit.inspect.resources import slots_of
from kernel_audit.inspect.same_values import ordered_axes
from kernel_audit.program.pipelines import EmittedPipeline
from kernel_audit.records import BlockMapping, Traffic


@dataclass(frozen=True)
class Moved:
    """One mapping with its visits, the block in which it is copied, and bytes: moved, clipped, floor."""

    mapping: Mapping
    visits: Visits
    block: tuple[int, ...]
    bytes: tuple[int | None, int | None, int | None]
    by: str  # "grid", "copies", or why it is not known
    uncovered: int | None = None  # blocks that no program writes, of those that are read

    @property
    def counts(self) -> tuple[int, ...]:
        """How many blocks there are along each dimension."""
        if self.mapping.piped:
            return self.mapping.counts
        return tuple(blocks_along(extent, size) for extent, size in zip(self.mapping.shape, self.block, strict=True))


def moves_of(
    kernel: KernelEquation,
    prefetched: Sequence[Any] | None,
    grid: Sequence[int | None],
    read: Table[int, list[Part | None] | None] | None = None,
) -> list[Moved]:
    """Every operand and result of a kernel, in order. `grid` is the launch grid with what is known of dynamic sizes,
    `read` the parts of each result that the program reads.
    """
    copies: list[Copied] | None = None
    why = "copies"
    if any(not each.piped for each in kernel.mappings) or copies_by_hand(kernel):
        try:
            copies = followed(kernel, grid, prefetched)
        except TooLong:
            why = "too-long"
        except CannotTell:
            why = "data-dependent"
    semantics = ordered_axes(kernel)
    moves = [_moved(kernel, each, prefetched, grid, copies, why, semantics) for each in kernel.mappings]
    for index, each in enumerate(moves):
        parts = (read or {}).get(each.mapping.position) if each.mapping.role == "output" else None
        uncovered = uncovered_of_parts(each.mapping, each.block, each.visits, grid, parts)
        moves[index] = replace(each, uncovered=uncovered)
    return moves


def _moved(
    kernel: KernelEquation,
    mapping: Mapping,
    prefetched: Sequence[Any] | None,
    grid: Sequence[int | None],
    copies: list[Copied] | None,
    why: str,
    semantics: Sequence[str],
) -> Moved:
    if mapping.memory_space in ("semaphore", "host"):
        return Moved(mapping, Visits("whole-array"), mapping.shape, (0, 0, 0), "grid")
    if mapping.piped:
        if kernel.platform == "gpu" and mapping.block == mapping.shape:
            once = mapping.block_bytes  # loads decide what is read of it, and how often
            return Moved(mapping, Visits("whole-array"), mapping.block, (None, None, once), "whole-array")
        values = prefetched if prefetched is not None and all(each is not None for each in prefetched) else None
        found = visits(mapping, grid, semantics, values)
        by = "grid" if found.copies is not None else "out-of-range" if found.out_of_range else found.proof
        if kernel.platform == "gpu" and by == "grid" and not _moves_once(kernel, mapping, found, grid):
            return Moved(mapping, found, mapping.block, (None, None, moved_bytes(mapping, found)[2]), "loads")
        return Moved(mapping, found, mapping.block, moved_bytes(mapping, found), by)
    if copies is None:
        proof = "sampled" if why == "too-long" else "data-dependent"
        return Moved(mapping, Visits(proof), mapping.shape, (None, None, None), why)
    found, block, moved = visits_by_copies(mapping, copies)
    return Moved(mapping, found, block, (moved, *moved_bytes(mapping, found)[1:]), "copies")


def _moves_once(kernel: KernelEquation, mapping: Mapping, found: Visits, grid: Sequence[int | None]) -> bool:
    """Whether every program of a kernel without a pipeline loads or stores its whole block exactly once."""
    return found.copies == math.prod(each or 0 for each in grid) and whole_accesses(kernel.body, mapping.reference) == 1


def block_mapping(moved: Moved, kernel: KernelEquation, pipeline: EmittedPipeline | None) -> BlockMapping:
    """The record of one operand or result."""
    mapping = moved.mapping
    slots = slots_of(mapping, kernel.platform)
    position = mapping.position + (len(kernel.inputs) if mapping.role == "output" else 0)
    if pipeline is not None and not mapping.piped and position < len(pipeline.slots):
        slots = pipeline.slots[position]
    return BlockMapping(
        name=mapping.name,
        role=mapping.role,
        position=mapping.position,
        shape=list(mapping.shape),
        dtype=getattr(mapping.dtype, "name", str(mapping.dtype)),
        block=list(moved.block),
        kinds=[each.kind for each in mapping.dims],
        index_map=index_text(mapping, len(kernel.grid)) if mapping.piped else "",
        memory_space=mapping.memory_space,
        slots=slots,
        copies=moved.visits.copies,
        moved_bytes=moved.bytes[0],
        clipped_bytes=moved.bytes[1],
        floor_bytes=moved.bytes[2],
        ownership=ownership_of(moved) if mapping.role == "output" else None,
    )


def ownership_of(moved: Moved) -> Any:
    """The ownership of a result in the blocks in which it is copied."""
    blocks = int(np.prod(moved.counts, dtype=np.int64))
    return msgspec.structs.replace(moved.visits.ownership(moved.mapping), blocks=blocks, uncovered=moved.uncovered)


def traffic_of(moves: Sequence[Moved], cost: Any) -> Traffic:
    """All operands and results together; None as soon as one of them is not known."""
    totals: list[int | None] = []
    for index in range(3):
        parts = [each.bytes[index] for each in moves]
        totals.append(None if any(each is None for each in parts) else sum(each for each in parts if each is not None))
    ways = [each.by for each in moves]
    unknown = next((each for each in ways if each not in ("grid", "copies")), None)
    derivation = unknown or ("copies" if "copies" in ways else "grid")
    claimed = None if cost is None else int(cost.bytes_accessed)
    return Traffic(moved=totals[0], clipped=totals[1], floor=totals[2], claimed=claimed, derivation=derivation)
