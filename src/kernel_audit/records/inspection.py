"""What a kernel says of itself before anything runs: grid, blocks, ownership, bytes, resources, findings."""

from __future__ import annotations

from typing import Any

from kernel_audit.records.canonical import Record
from kernel_audit.records.observations import Finding

# How ownership is known: every grid point evaluated; from affine index maps without evaluating them; every copy of the
# kernel's own control followed; some grid points only; not without the values that drive the maps; or not by blocks,
# since the whole array is there for every program.
PROOFS = ("enumerated", "affine", "copies", "sampled", "data-dependent", "whole-array", "not-read")


class Ownership(Record, kw_only=True):
    """Which blocks of a result the programs write, counted over blocks; None where it is not known.

    `uncovered` blocks are written by no program, `repeated` by more than one, `revisited` again after another block
    came between, which a pipeline does not promise to keep. `out_of_range` counts programs whose block lies outside
    the array. `shared_parallel` counts blocks that programs share which differ along an axis declared parallel.
    """

    blocks: int
    uncovered: int | None
    repeated: int | None
    revisited: int | None
    out_of_range: int | None
    shared_parallel: int | None
    proof: str


class OwnerMap(Record, kw_only=True):
    """A part of who owns what, for a drawing: the program (in order of the grid) that first writes each block.

    `rows` and `columns` are the block numbers shown, of the last two dimensions; the first ones and the last ones
    where there are many. `owners[r][c]` is None for a block that nobody writes, or -1 where it is not known.
    `logical_shape` is the result without padding that is cropped after the kernel: `last_row` is the number of the block
    that holds its last row, in which `rows_in_last` rows are logical; likewise for columns.
    """

    result: str
    shape: list[int]
    logical_shape: list[int]
    block: list[int]
    rows: list[int]
    columns: list[int]
    owners: list[list[int | None]]
    last_row: int
    last_column: int
    rows_in_last: int
    columns_in_last: int
    blocks: list[int]


class BlockMapping(Record, kw_only=True):
    """One operand or result of a kernel, cut into blocks.

    `role` is "input" or "output", `position` its number among them. `block` gives elements for each dimension, `kinds`
    how the index map counts there ("blocked", "squeezed", "element", "bounded-slice"). `index_map` is the block as a
    function of the grid ("(i, 2*j)"), or what it rests on where it is no such form; empty where the kernel copies by
    itself. `slots` are buffers in fast memory.
    `copies` counts blocks moved, `moved_bytes` in whole blocks, `clipped_bytes` the part of them inside the array,
    `floor_bytes` each visited block once, clipped. None where they are not known.
    """

    name: str
    role: str
    position: int
    shape: list[int]
    dtype: str
    block: list[int]
    kinds: list[str]
    index_map: str
    memory_space: str
    slots: int
    copies: int | None
    moved_bytes: int | None
    clipped_bytes: int | None
    floor_bytes: int | None
    ownership: Ownership | None = None


class Buffer(Record, kw_only=True):
    """Memory that a kernel holds for itself: scratch, and what its body allocates."""

    shape: list[int]
    dtype: str
    memory_space: str


class Traffic(Record, kw_only=True):
    """Bytes between main memory and fast memory in one run of the kernel.

    `moved`: whole blocks, as the TPU interpreter copies them; `clipped`: the part of them inside the arrays; `floor`:
    each visited block once; `claimed`: the author's cost estimate. None where it is not known or not stated.
    `derivation`: "grid", "copies" (the kernel's own copies followed), "loads" (a GPU kernel loads parts of its
    blocks), "data-dependent", "out-of-range",
    "whole-array", "too-long" (more steps than are followed), "sampled" or "not-read".
    """

    moved: int | None
    clipped: int | None
    floor: int | None
    claimed: int | None
    derivation: str


class CopyAround(Record, kw_only=True):
    """An operation next to a kernel that moves data and calculates nothing: as traced, a compiler may still fuse it.

    `kind`: "pad", "crop", "transpose", "relayout", "concatenate", "cast". `side`: "operand" or "result", with its
    number. `bytes`: what is read plus what is written.
    """

    kind: str
    side: str
    position: int
    from_array: str
    to_array: str
    bytes: int


class Dot(Record, kw_only=True):
    """A matrix product in a kernel's body; `precision` as declared, "default" where nothing is."""

    left: str
    right: str
    result: str
    precision: str


class Pipeline(Record, kw_only=True):
    """An `emit_pipeline` inside a kernel: its grid, block shapes and slots as they were when it was traced."""

    grid: list[int]
    blocks: list[list[int]]
    slots: list[int]


class Fit(Record, kw_only=True):
    """The model of buffer storage beside the fast memory of a target, and the least time that the published peaks allow.

    A static model: never a measurement. `floor_s` is None where bytes are not known; `bound_by` is "memory" or
    "arithmetic".
    """

    target: str
    limit_bytes: int
    share: float
    floor_s: float | None
    bound_by: str
    source: str


class KernelInspection(Record, kw_only=True):
    """One kernel of one program, read from the traced program; nothing was run. `ownership` and padding are those of the
    results that the program reads: some kernels keep scratch in results.

    `grid` is the grid that moves blocks: that of an `emit_pipeline` where the kernel is launched once and holds one,
    else that of the launch (`launch_grid`; -1 for a size that is known only at run time). `programs` is its product.
    `trips`: how often the program runs this kernel; None where a loop's length is not known. `padded_elements` are the
    elements of all blocks that are written, padding included, and `padded_share` the part of them outside the logical
    results. `buffer_model_bytes`: slots x block for each blocked
    operand and result, plus scratch. `operations` counts arithmetic as written, with every branch taken.
    """

    schema: str = "kernel-audit/kernel-inspection/1"
    program: str
    path: str
    name: str
    primitive: str
    digest: str
    platform: str
    grid: list[int]
    launch_grid: list[int]
    programs: int | None
    trips: int | None
    semantics: list[str]
    mappings: list[BlockMapping]
    prefetched: list[str]
    scratch: list[Buffer]
    allocated: list[Buffer]
    aliases: list[list[int]]
    pipelines: list[Pipeline]
    ownership: Ownership
    owner_map: OwnerMap | None
    padded_elements: int | None
    padded_share: float | None
    buffer_model_bytes: int
    bytes: Traffic
    operations: int | None
    intensity: float | None
    fits: list[Fit]
    copies_around: list[CopyAround]
    casts: list[str]
    dots: list[Dot]
    cost_estimate: dict[str, Any] | None
    findings: list[Finding]
    jax_version: str
    level: str = "traced"
    provenance: str = "derived"
