"""One compiled program, read: which kernels are in it, what it moves, how it is scheduled."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kernel_audit.program.kernel_bodies import CALLS, mosaic_call_body, triton_call_body, triton_shared_bytes
from kernel_audit.records import Around, Collective, CompiledKernel, GpuKernel, Record, ScheduledPart
from kernel_audit.target.hlo import Instruction, Module, parse_module
from kernel_audit.target.ptx import assembled, ptx_digest
from kernel_audit.target.schedule import read_schedule
from kernel_audit.target.summary import summary_of
from kernel_audit.target.traffic import Movement, movements, total_bytes


@dataclass(frozen=True)
class CompilerOutput:
    """What a compile worker has of one program: its HLO text, the kernels traced in it, the folder of the dump, and of a
    GPU its compute capability ("9.0")."""

    text: str
    platform: str
    kernels: list[CompiledKernel]
    dump: Path
    capability: str = ""


class Reading(Record, kw_only=True):
    """What could be read. `schedule_bundles` are all bundles executed, None where a loop's trips are not known; `shared_bytes`
    shared memory that a GPU program asks for when launched, which `ptxas` does not see, None where that cannot be told."""

    kernels: list[CompiledKernel]
    compiler_calls: list[str]
    fusions: int
    copies: int
    copy_bytes: int | None
    collectives: list[Collective]
    around: list[Around]
    derived_bytes: int | None
    schedule: list[ScheduledPart]
    schedule_bundles: int | None
    gpu_kernels: list[GpuKernel]
    ptx_digest: str | None
    shared_bytes: int | None = None


def read_compiled(compiled: CompilerOutput) -> Reading:
    """Everything that the record of a compiled program says of its code."""
    module = parse_module(compiled.text)
    calls = _kernel_calls(module, compiled)
    by_body = {each.body: each for each in compiled.kernels if each.body}
    known = {name: by_body.get(body) for name, body in calls.items()}
    moved = list(movements(module, {name: each.bytes_moved if each else None for name, each in known.items()}))
    summary = summary_of(moved, {name: each.name if each else name for name, each in known.items()})
    schedule = read_schedule(compiled.dump, {name: each.programs if each else None for name, each in known.items()})
    ptx = _ptx(compiled)
    return Reading(
        kernels=[msgspec.structs.replace(each, found=each.body in calls.values()) for each in compiled.kernels],
        compiler_calls=_compilers_own(module, known),
        fusions=summary.fusions,
        copies=summary.copies,
        copy_bytes=summary.copy_bytes,
        collectives=summary.collectives,
        around=summary.around,
        derived_bytes=total_bytes(moved),
        schedule=schedule,
        schedule_bundles=_executed(schedule, moved),
        gpu_kernels=assembled(ptx, compiled.dump) if ptx else [],
        ptx_digest=ptx_digest(ptx) if ptx else None,
        shared_bytes=_shared_at_launch(module, compiled, ptx),
    )


def _instructions(module: Module) -> list[Instruction]:
    return [each for computation in module.computations.values() for each in computation.instructions]


def _kernel_calls(module: Module, compiled: CompilerOutput) -> dict[str, str]:
    """Instruction name -> digest of the kernel body in it, for each call that holds one."""
    found = {}
    for each in _instructions(module):
        if each.opcode == "custom-call" and each.call_target in CALLS[compiled.platform]:
            read = mosaic_call_body if compiled.platform == "tpu" else triton_call_body
            found[each.name] = read(each.attributes)
    return found


def _compilers_own(module: Module, known: dict[str, CompiledKernel | None]) -> list[str]:
    """Opaque calls that no traced kernel stands for: the compiler made them itself."""
    marks = ("AllocateBuffer", "Sharding", "LayoutConstraint", "AssumeGatherIndicesInBound")
    return sorted(
        f"{each.name}: {each.call_target}"
        for each in _instructions(module)
        if each.opcode == "custom-call" and known.get(each.name) is None and each.call_target not in marks
    )


def _executed(schedule: list[ScheduledPart], moved: list[Movement]) -> int | None:
    """Bundles executed by the scheduled parts, each as often as the program runs it; None without a dump or a trip count."""
    trips = {each.instruction.name: each.trips for each in moved}
    parts = [each for each in schedule if each.name in trips]
    if not parts:
        return None
    total = 0
    for each in parts:
        around = trips[each.name]
        if each.steps is None or around is None:
            return None
        outside = each.bundles - each.step_bundles if each.steps != 1 and each.bundles > each.step_bundles else 0
        total += around * (outside + each.step_bundles * each.steps)
    return total


def _shared_at_launch(module: Module, compiled: CompilerOutput, ptx: str) -> int | None:
    """The most that one of the program's kernels asks for; 0 where nothing does, None where code of XLA's own does."""
    if ".extern .shared" not in ptx:
        return 0
    kernels = [each for each in _instructions(module) if each.call_target in CALLS["cuda"]]
    asked = [triton_shared_bytes(each.attributes, compiled.capability) for each in kernels]
    told = [each for each in asked if each is not None]
    return max(told) if told and len(told) == len(asked) else None


def memory_spaces(text: str) -> dict[str, int]:
    """The most on-chip bytes that one instruction of a compiled TPU program holds for itself, by memory."""
    names = {"1": "vmem", "6": "smem"}
    found: dict[str, int] = {}
    for configs in re.findall(r'"used_scoped_memory_configs":\[(.*?)\]', text):
        for space, size in re.findall(r'"memory_space":"(\d+)","offset":"\d+","size":"(\d+)"', configs):
            if space in names:
                found[names[space]] = max(found.get(names[space], 0), int(size))
    return found


def _ptx(compiled: CompilerOutput) -> str:
    if compiled.platform != "cuda":
        return ""
    files = sorted(compiled.dump.glob("*.ptx"))
    return "\n".join(path.read_text("utf-8", errors="replace") for path in files[-1:])
