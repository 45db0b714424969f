"""From what a subject worker and a compile worker told to one record, with the findings that it carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from kernel_audit.contract import Audit
from kernel_audit.records import CompiledKernel, CompiledRecord, CompilerReason, Finding, MemoryUse, ProgramPlan
from kernel_audit.target.described import DescribedTarget
from kernel_audit.target.schedule import AROUND, NO_DUMP

CANDIDATE = "candidate"
OWN_STAGES = ("guard", "candidate")  # the function raised: no compiler was asked
NO_AUTOTUNING = (
    "compiled without a GPU: XLA chose algorithms without autotuning, so library code may differ on a real card"
)


@dataclass(frozen=True)
class Compilation:
    """One program: what was asked (`plan`), what the exporting worker told and what the compiling worker told.

    `target.devices` is what the program runs on: one, or all of the topology for a step.
    """

    audit: Audit
    target: DescribedTarget
    part: str
    side: str
    tuned: bool
    plan: ProgramPlan
    exported: dict[str, Any]
    compiled: dict[str, Any]

    @property
    def declared(self) -> bool:
        """Whether the audit is for this target; an audit that names none is for every target that is asked."""
        targets = self.audit.targets
        return targets is None or self.target.name in targets


def record_of(made: Compilation) -> CompiledRecord:
    """The record of one program for one target."""
    refused = made.exported.get("reason") or made.compiled.get("reason")
    reason = msgspec.convert(refused, CompilerReason) if refused else None
    accepted = None if reason is not None and reason.stage == "worker" else reason is None
    record = CompiledRecord(
        target=made.target.name,
        part=made.part,
        side=made.side,
        dtype=made.plan.dtype,
        configuration=made.plan.configuration,
        mode=made.plan.mode,
        dims=made.plan.dims,
        devices=made.target.devices,
        topology=made.target.topology,
        program=made.exported.get("program", ""),
        declared=made.declared,
        accepted=accepted,
        reason=reason,
        compilers=made.target.compilers(),
        compile_s=made.compiled.get("compile_s"),
        kernels=_kernels(made),
        note=made.exported.get("note", ""),
    )
    if accepted:
        record = _with_code(record, made)
    return msgspec.structs.replace(record, findings=_findings(record, made))


def _kernels(made: Compilation) -> list[CompiledKernel]:
    if "kernels" in made.compiled:
        return msgspec.convert(made.compiled["kernels"], list[CompiledKernel])
    return msgspec.convert(made.exported.get("kernels", []), list[CompiledKernel])


def _with_code(record: CompiledRecord, made: Compilation) -> CompiledRecord:
    """The record with what was read of the compiled code, and the static model on it."""
    told = made.compiled
    fields = ("fusions", "copies", "copy_bytes", "compiler_calls", "around", "collectives", "schedule", "gpu_kernels")
    typed = msgspec.convert(
        {**_plain(record), **{name: told[name] for name in fields}, "derived_bytes": told["derived_bytes"]},
        CompiledRecord,
    )
    typed = msgspec.structs.replace(
        typed, memory=msgspec.convert(told["memory"], MemoryUse), ptx_digest=told["ptx_digest"]
    )
    typed = _with_model(typed, made.target, told["schedule_bundles"])
    return _with_gpu(typed, told) if made.target.platform == "gpu" else typed


def _plain(record: CompiledRecord) -> dict[str, Any]:
    return msgspec.to_builtins(record)


def _with_model(record: CompiledRecord, target: DescribedTarget, executed: int | None) -> CompiledRecord:
    """bundles, spills and fills, and the floor: the larger of bytes over bandwidth and bundles over clock."""
    kernels = [each for each in record.schedule if each.kernel]
    parts = kernels or [each for each in record.schedule if each.name != AROUND]
    copies = record.derived_bytes / target.device.hbm_bytes_per_s if record.derived_bytes is not None else None
    scheduled = executed / target.device.clock_hz if executed is not None and target.device.clock_hz else None
    floor = max(copies, scheduled or 0.0) if copies is not None else None
    bound = "" if floor is None else "schedule" if scheduled is not None and scheduled > copies else "copies"
    return msgspec.structs.replace(
        record,
        bundles=sum(each.step_bundles if kernels else each.bundles for each in parts) if parts else None,
        spills=sum(each.spills for each in parts) if parts else None,
        fills=sum(each.fills for each in parts) if parts else None,
        copy_seconds=copies,
        schedule_seconds=scheduled,
        floor_seconds=floor,
        bound_by=bound,
        note=NO_DUMP if target.platform == "tpu" and not record.schedule else record.note,
    )


def _with_gpu(record: CompiledRecord, told: dict[str, Any]) -> CompiledRecord:
    """Registers, spills and shared memory: the largest of the kernels' entry functions, of all where there is no kernel."""
    names = {each.name for each in record.kernels if each.found}
    entries = [each for each in record.gpu_kernels if each.name in names] or record.gpu_kernels
    dynamic = told.get("shared_bytes")
    static = max((each.shared_bytes for each in entries), default=0)
    shared = static + dynamic if dynamic is not None else None
    return msgspec.structs.replace(
        record,
        registers=max((each.registers for each in entries), default=None),
        spills=sum(each.spill_store_bytes for each in entries) if entries else None,
        fills=sum(each.spill_load_bytes for each in entries) if entries else None,
        shared_bytes=shared if entries else None,
        note=" ".join(each for each in (record.note, NO_AUTOTUNING) if each),
    )


def _findings(record: CompiledRecord, made: Compilation) -> list[Finding]:
    scope = ", ".join([record.target, *(f"{name} {text}" for name, text in record.compilers.items())])
    found = []
    reads = made.exported.get("reads_backend") or []
    if record.side == CANDIDATE and reads:
        found.append(
            Finding(
                code="candidate-reads-backend",
                subject="kernel",
                text=f"jax.default_backend() is asked at {', '.join(reads)}: where no target is, the answer is cpu, and an "
                "ordinary compile for a described device would hold no kernel; it was answered for the target here",
                scope=scope,
            )
        )
    if record.accepted is False and record.declared:  # what the audit is not for may refuse it
        found.append(_refusal(record, scope))
    if record.accepted is None:
        found.append(Finding(code="not-compiled", subject="environment", text=_told(record), scope=scope))
    if record.accepted:
        found += _about_calls(record, scope)
    return found


def _refusal(record: CompiledRecord, scope: str) -> Finding:
    """By Pallas or the compiler; or by the function itself, before either was asked."""
    reason = record.reason
    assert reason is not None
    subject = "kernel" if record.side == CANDIDATE else "audit"
    if reason.stage in OWN_STAGES:
        at = f", at {reason.source}" if reason.source else ""
        text = f"{_told(record)} ({reason.kind}{at}); traced for {record.target}"
        code = "candidate-raises" if record.side == CANDIDATE else "baseline-raises"
        return Finding(code=code, subject=subject, text=text, scope="any target")
    code = "compiler-refuses" if record.side == CANDIDATE else "compiler-refuses-baseline"
    return Finding(code=code, subject=subject, text=_told(record), scope=scope)


def _told(record: CompiledRecord) -> str:
    what = record.side if record.part == "program" else f"{record.side} in the complete step"
    reason = record.reason.text if record.reason is not None else "no result"
    return f"{what}, {record.dtype}, {record.configuration or 'no configuration'}: {reason}"


def _about_calls(record: CompiledRecord, scope: str) -> list[Finding]:
    found = []
    for each in record.kernels:
        if not each.found:
            why = "nothing uses its result" if not each.live else "no call in the compiled program holds its body"
            text = f"{each.name} ({each.path}) is not in the compiled program: {why}"
            found.append(Finding(code="kernel-not-in-program", subject="kernel", text=text, scope=scope))
    if record.side == CANDIDATE and record.kernels and record.spills:
        unit = "bytes a thread" if record.target.startswith("gpu") else "stores in its schedule"
        text = f"{record.dtype}, {record.configuration or 'no configuration'}: registers are spilled, {record.spills:,} {unit}"
        found.append(Finding(code="kernel-spills", subject="kernel", text=text, scope=scope))
    if record.compiler_calls and not (record.side == CANDIDATE and record.target.startswith("gpu")):
        text = f"{record.side}: the compiler made its own call of {', '.join(record.compiler_calls)}; it is no kernel"
        found.append(Finding(code="compiler-custom-call", subject="environment", text=text, scope=scope))
    return found
