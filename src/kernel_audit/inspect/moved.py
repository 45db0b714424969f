"""What each operand and result of a kernel moves: by the grid where a pipeline moves it, by the kernel's own copies else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_audit.inspect.by_copies import visits_by_copies
from kernel_audit.inspect.control import CannotTell, Copied, TooLong, copies_by_hand, followed
from kernel_audit.inspect.equation import KernelEquation, Mapping, blocks_along
from kernel_audit.inspect.index_map import index_text
from kernel_audit.inspect.ownership import Visits, moved_bytes, visits
from kernel_audit.inspect.resources import slots_of
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

    @property
    def counts(self) -> tuple[int, ...]:
        """How many blocks there are along each dimension."""
        if self.mapping.piped:
            return self.mapping.counts
        return tuple(blocks_along(extent, size) for extent, size in zip(self.mapping.shape, self.block, strict=True))


def moves_of(kernel: KernelEquation, prefetched: Sequence[Any] | None, grid: Sequence[int | None]) -> list[Moved]:
    """Every operand and result of a kernel, in order. `grid` is the launch grid with what is known of dynamic sizes."""
    copies: list[Copied] | None = None
    why = "copies"
    if any(not each.piped for each in kernel.mappings) or copies_by_hand(kernel):
        try:
            copies = followed(kernel, grid, prefetched)
        except TooLong:
            why = "too-long"
        except CannotTell:
            why = "data-dependent"
    return [_moved(kernel, each, prefetched, grid, copies, why) for each in kernel.mappings]


def _moved(
    kernel: KernelEquation,
    mapping: Mapping,
    prefetched: Sequence[Any] | None,
    grid: Sequence[int | None],
    copies: list[Copied] | None,
    why: str,
) -> Moved:
    if mapping.memory_space in ("semaphore", "host"):
        return Moved(mapping, Visits("whole-array"), mapping.shape, (0, 0, 0), "grid")
    if mapping.piped:
        if kernel.platform == "gpu" and mapping.block == mapping.shape:
            once = mapping.block_bytes  # loads decide what is read of it, and how often
            return Moved(mapping, Visits("whole-array"), mapping.block, (None, None, once), "whole-array")
        values = prefetched if prefetched is not None and all(each is not None for each in prefetched) else None
        found = visits(mapping, grid, kernel.semantics, values)
        by = "grid" if found.copies is not None else "out-of-range" if found.out_of_range else found.proof
        return Moved(mapping, found, mapping.block, moved_bytes(mapping, found), by)
    if copies is None:
        proof = "sampled" if why == "too-long" else "data-dependent"
        return Moved(mapping, Visits(proof), mapping.shape, (None, None, None), why)
    found, block, moved = visits_by_copies(mapping, copies)
    return Moved(mapping, found, block, (moved, *moved_bytes(mapping, found)[1:]), "copies")


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
    from msgspec.structs import replace

    return replace(moved.visits.ownership(moved.mapping), blocks=int(np.prod(moved.counts, dtype=np.int64)))


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
