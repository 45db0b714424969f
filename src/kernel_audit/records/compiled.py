"""What a target's own compiler made of a program, for a described device: compile evidence, never run evidence."""

from __future__ import annotations

from typing import Any

from kernel_audit.records.canonical import Record
from kernel_audit.records.observations import Finding


class CompilerReason(Record, kw_only=True):
    """Why a program was refused, reduced to what its author can act on.

    `stage`: "guard" (the function raised on purpose while it was traced), "candidate" (it raised by mistake), "lowering"
    (Pallas), "compiler" (the target's), "worker" (no answer: the worker ended).
    `kind` is the exception's type. `operation` is what was refused, `source` "file.py:line" in the author's files where it is
    known, `memory` the memory that is too small with `limit_bytes` and `used_bytes`, `text` the compiler's own first lines.
    """

    stage: str
    kind: str
    operation: str = ""
    source: str = ""
    memory: str = ""
    limit_bytes: int | None = None
    used_bytes: int | None = None
    text: str


class CompiledKernel(Record, kw_only=True):
    """One traced kernel looked for in the compiled program, by name and by the digest of its lowered body.

    `digest` is the kernel's identity when traced; `body` that of its lowered body without locations, None where it could
    not be lowered alone. `bytes_moved` is None where it cannot be told.
    """

    name: str
    path: str
    digest: str
    body: str | None
    found: bool
    live: bool
    programs: int | None = None
    bytes_moved: int | None = None
    bytes_claimed: int | None = None


class MemoryUse(Record, kw_only=True):
    """Bytes of one device, as the compiler accounts for them. `spaces`: the most that one
    instruction holds for itself of each on-chip memory (vmem, smem)."""

    arguments_bytes: int
    results_bytes: int
    aliased_bytes: int
    temporary_bytes: int
    code_bytes: int
    spaces: dict[str, int] = {}


class Collective(Record, kw_only=True):
    """A collective of the compiled program. `payload_bytes` is what one device puts in; `trips` counts loops around it."""

    kind: str
    payload_bytes: int
    replica_groups: str
    trips: int | None = 1


class Around(Record, kw_only=True):
    """An operation beside an opaque call that the compiler could not fuse into it: "before" or "after", with the bytes of
    main memory that it moves."""

    operation: str
    opcode: str
    side: str
    kernel: str
    moved_bytes: int | None


class ScheduledPart(Record, kw_only=True):
    """One part of the final schedule: a kernel or a fusion.

    `bundles` are instruction words of one pass over its code (`step_bundles` of these inside its outer loop), each loop inside
    counted as often as it runs; `steps` is how often the outer loop runs, None where it cannot be told. `spills` and `fills`
    are stores and loads of spilled registers in the code. `critical_path` is the longest dependency chain of its largest block,
    in cycles. `units` gives the share of issue slots used, by unit.
    """

    name: str
    kernel: bool
    bundles: int
    step_bundles: int
    steps: int | None
    spills: int
    fills: int
    critical_path: int | None = None
    units: dict[str, float] = {}


class GpuKernel(Record, kw_only=True):
    """What `ptxas` says of one entry function: registers a thread, spilled bytes, static shared memory in bytes."""

    name: str
    registers: int
    spill_store_bytes: int
    spill_load_bytes: int
    shared_bytes: int
    stack_bytes: int


class CompiledRecord(Record, kw_only=True):
    """One program compiled for one described target. `side` is "candidate" or a baseline's name; `part` is "program", or "step"
    for the complete sharded step, whose figures are those of one device out of `devices`.

    `accepted` None: not compiled, `reason` says why. `declared`: whether the audit is for this target. `bundles` of a program
    with kernels are those of one step of each kernel, of one without those of all its parts. `derived_bytes` are bytes of
    main memory read and written by one device, derived from grids, maps and the compiled program's operands and results; None
    where they cannot be told. `copy_seconds` is their time at the published bandwidth, `schedule_seconds` that of the bundles
    at the clock; `floor_seconds` is the larger, a *static model* and no measurement; `bound_by` is "copies", "schedule" or ""
    (not known). On a GPU `spills` and `fills` are bytes of a thread, and `shared_bytes` is of one block.
    """

    schema: str = "kernel-audit/compiled/1"
    target: str
    part: str = "program"
    side: str
    dtype: str
    configuration: dict[str, Any]
    mode: dict[str, Any] = {}
    dims: dict[str, int]
    devices: int = 1
    topology: str = ""
    program: str = ""
    declared: bool = True
    accepted: bool | None
    reason: CompilerReason | None = None
    compilers: dict[str, str] = {}
    compile_s: float | None = None
    kernels: list[CompiledKernel] = []
    memory: MemoryUse | None = None
    fusions: int | None = None
    copies: int | None = None
    copy_bytes: int | None = None
    compiler_calls: list[str] = []
    around: list[Around] = []
    collectives: list[Collective] = []
    schedule: list[ScheduledPart] = []
    bundles: int | None = None
    spills: int | None = None
    fills: int | None = None
    derived_bytes: int | None = None
    copy_seconds: float | None = None
    schedule_seconds: float | None = None
    floor_seconds: float | None = None
    bound_by: str = ""
    provenance: str = "static model"
    gpu_kernels: list[GpuKernel] = []
    registers: int | None = None
    shared_bytes: int | None = None
    ptx_digest: str | None = None
    findings: list[Finding] = []
    note: str = ""


def compiled_name(record: CompiledRecord) -> str:
    """How findings refer to a compiled record: "tpu:v5e/candidate/float32/block=8x128,buffers=2"."""
    choices = ",".join(f"{key}={_text(value)}" for key, value in {**record.mode, **record.configuration}.items())
    part = "" if record.part == "program" else f"/{record.part}"
    return f"{record.target}{part}/{record.side}/{record.dtype}/{choices or 'default'}"


def _text(value: Any) -> str:
    return "x".join(_text(each) for each in value) if isinstance(value, list) else str(value)


class Respelling(Record, kw_only=True):
    """A baseline spelled in another way by the tool. `correct`: its result is the baseline's, within `agreement`."""

    name: str
    of: str
    how: str
    correct: bool | None
    error_max: float | None = None
    agreement: str = ""
    record: CompiledRecord | None = None
    note: str = ""


class FamilyMember(Record, kw_only=True):
    """One point of a contract probe: what was changed, and whether this compiler takes it."""

    target: str
    builder: str
    dtype: str
    configuration: dict[str, Any]
    changed: str
    accepted: bool | None
    reason: CompilerReason | None = None


class SweptPoint(Record, kw_only=True):
    """One size of a sweep: the least figure of any configuration of the candidate, and of any baseline; None where no compiler
    gave one."""

    size: int
    candidate: float | None
    baseline: float | None


class CompiledSweep(Record, kw_only=True):
    """Where along a dimension the candidate begins or ceases to be better by a static figure: an interval between two sizes, or
    none in range. `figure` is "derived bytes" or "static floor" (seconds). A model, and no time."""

    target: str
    dtype: str
    dimension: str
    fixed: dict[str, int]
    figure: str
    says: str
    points: list[SweptPoint]


class CompiledReport(Record, kw_only=True):
    """All that `kernel-audit compile` found. `not_compiled`: by target, the sentence that says why, and what would help."""

    schema: str = "kernel-audit/compiled-report/1"
    audit: str
    records: list[CompiledRecord]
    not_compiled: dict[str, str] = {}
    family: list[FamilyMember] = []
    respellings: list[Respelling] = []
    sweeps: list[CompiledSweep] = []
    notes: list[str] = []
    findings: list[Finding] = []
