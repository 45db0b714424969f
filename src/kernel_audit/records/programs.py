"""What is known of a captured program without running it."""

from __future__ import annotations

from typing import Any

from kernel_audit.records.canonical import Record


class Kernel(Record, kw_only=True):
    """One kernel equation found in a program.

    `digest` covers everything that defines the kernel except how it is run (`interpret`) and where it was written.
    `blocks` are the block shapes of its operands and results, `allocations` the shapes of the buffers that its body
    allocates (an emitted pipeline leaves only these: slots x block). `written_inputs` are indices of operands that the body
    stores to although they are not aliased to a result.
    """

    path: str
    name: str
    primitive: str
    digest: str
    grid: list[int]
    blocks: list[list[int]]
    allocations: list[list[int]]
    authored_interpret: str
    written_inputs: list[int]


class CaptureRecord(Record, kw_only=True):
    """One program: candidate or baseline captured at one shape, dtype, mode and configuration.

    `digest` is the program's identity: of the canonical jaxpr, without `interpret` and source locations.
    `live_kernels` counts the kernels that a result depends on.
    `outside` names primitives that calculate outside of its kernels, where the contract asks that its kernels alone do.
    `retrace_same`: a second trace gives the same program; `as_cpu_same`: so does one where the backend is said to be a
    CPU. `exports` maps a level ("generic", "target") to the digest of the exported bytes, which serves integrity only.
    """

    schema: str = "kernel-audit/program/1"
    key: str
    side: str
    configuration: dict[str, Any]
    mode: dict[str, Any]
    operands: list[str]
    results: list[str]
    digest: str
    kernels: list[Kernel]
    donated: list[int]
    exports: dict[str, str]
    jax_version: str
    simulated_device: str
    live_kernels: int | None = None
    retrace_same: bool | None = None
    as_cpu_same: bool | None = None
    outside: list[str] = []
    note: str = ""
