"""`inspect`: an audit's kernels read before anything runs. The parent's side; imports no JAX, no candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.conduct import Question, evaluate, locate
from kernel_audit.contract import Audit
from kernel_audit.errors import AuditFileError, CaptureError, InternalError, from_parts
from kernel_audit.matrix.check import Progress
from kernel_audit.matrix.plan import configurations
from kernel_audit.records import KernelInspection, ProgramPlan, Record, device_of
from kernel_audit.worker import Job, JobResult, Pool
from kernel_audit.worker.scratch import scratch_folder

PRELOAD = ("kernel_audit.matrix.audit_job", "kernel_audit.matrix.inspect_job")
DEFAULT_TARGET = "tpu:v5e"


class InspectedProgram(Record, kw_only=True):
    """One program: what was captured, and in `refused` why it was not; `kernels` names how many were read."""

    key: str
    dims: dict[str, int]
    dtype: str
    configuration: dict[str, Any]
    mode: dict[str, Any]
    operands: list[str] = []
    results: list[str] = []
    digest: str = ""
    kernels: int = 0
    refused: str = ""


@dataclass(frozen=True)
class Inspection:
    """What `inspect` found: one entry a program, and one a kernel a program."""

    audit: Audit
    programs: list[InspectedProgram]
    kernels: list[KernelInspection]


def inspect(question: Question, targets: Sequence[str], progress: Progress) -> Inspection:
    """Every configuration, mode and dtype of an audit at its declared sizes; nothing of the candidate runs but its trace.

    `targets` are described devices; without any, those of the audit. An audit needs neither baselines nor worth here.

    Raises AuditFileError, TargetError for a target that is not described, CaptureError where no program could be
    captured at all.
    """
    described = [device_of(each).name for each in targets]
    question, roots = _placed(question)
    with scratch_folder() as work, Pool(size=1, preload=PRELOAD) as pool:
        progress("reading the audit", 0, None)
        audit, _ = evaluate(question, pool, Path(work, "audit"))
        plans = program_plans(audit)
        progress("reading kernels", 0, len(plans))
        wanted = described or audit.targets
        arguments = {
            "audit": msgspec.to_builtins(audit),
            "roots": [str(each) for each in roots],
            "programs": msgspec.to_builtins(plans),
            "targets": wanted,
            "device": wanted[0] if wanted else DEFAULT_TARGET,
        }
        job = Job(
            function="kernel_audit.matrix.inspect_job:inspect_programs",
            arguments=arguments,
            folder=Path(work, "inspect"),
            deadline_s=question.limits.deadline_s,
            memory_bytes=question.limits.memory_bytes,
            import_path=tuple(str(each) for each in roots),
        )
        return _told(audit, plans, pool.run(job))


def program_plans(audit: Audit) -> list[ProgramPlan]:
    """One program for each configuration, mode and dtype, at the declared sizes."""
    modes: list[dict[str, Any]] = [{}]
    for name, choices in audit.modes.items():
        modes = [{**each, name: choice} for each in modes for choice in choices]
    choices = [(c, m, b) for c in configurations(audit) for m in modes for b in audit.dtype_bindings()]
    return [
        ProgramPlan(
            key=f"p{index:03d}",
            dims=audit.declared_dims,
            binding=binding,
            mode=mode,
            configuration=configuration,
            engine="none",
        )
        for index, (configuration, mode, binding) in enumerate(choices)
    ]


def _placed(question: Question) -> tuple[Question, list[Path]]:
    """The question with a candidate's file by its name, and the folders that files are relative to."""
    roots = [locate(question.audit).root]
    place, _, name = (question.candidate or "").rpartition(":")
    if not place.endswith(".py"):
        return question, roots
    file = Path(place).resolve()
    if not file.is_file():
        raise AuditFileError(
            "no such candidate file",
            stage="audit",
            where=f"--candidate {question.candidate}",
            expected="a Python file",
            got=place,
        )
    return replace(question, candidate=f"{file.name}:{name}"), [*roots, file.parent]


def _told(audit: Audit, plans: list[ProgramPlan], result: JobResult) -> Inspection:
    """The records that the worker told. Raises CaptureError where there is none."""
    programs, kernels = [], []
    for plan in plans:
        told = result.steps.get(plan.key)
        made = _program(plan, told, result)
        found = msgspec.convert(told["kernels"], list[KernelInspection]) if told and "kernels" in told else []
        programs.append(msgspec.structs.replace(made, kernels=len(found)))
        kernels += found
    if not any(each.digest for each in programs):
        raise _nothing(audit, programs, result)
    return Inspection(audit, programs, kernels)


def _program(plan: ProgramPlan, told: Any, result: JobResult) -> InspectedProgram:
    about = {
        "key": plan.key,
        "dims": plan.dims,
        "dtype": plan.dtype,
        "configuration": plan.configuration,
        "mode": plan.mode,
    }
    if told is None:
        return InspectedProgram(**about, refused=f"not captured: the worker {result.outcome}")
    if "refused" in told:
        raised = told["refused"]
        at = f", at {raised['at']}" if raised.get("at") else ""
        return InspectedProgram(**about, refused=f"{raised['raised']}: {raised['message']}{at}")
    if "fault" in told:
        return InspectedProgram(**about, refused=from_parts(told["fault"]).text())
    return InspectedProgram(**about, operands=told["operands"], results=told["results"], digest=told["digest"])


def _nothing(audit: Audit, programs: list[InspectedProgram], result: JobResult) -> Exception:
    if stated := result.audit_error():
        return stated
    error = result.error or {}
    if result.outcome == "raised" and "import" in result.steps:
        return InternalError(
            "a kernel could not be read",
            stage="inspect",
            where=f"audit {audit.name!r}",
            got=f"{error.get('type')}: {error.get('message')} ({error.get('where')})",
        )
    told = programs[0].refused if programs and result.steps.get(programs[0].key) else ""
    return CaptureError(
        "no program of this audit could be captured",
        stage="inspect",
        where=f"audit {audit.name!r}: candidate {audit.candidate.text}",
        expected="a candidate that can be traced at the declared sizes",
        got=told or f"{error.get('type', result.outcome)}: {error.get('message', 'no result')}",
        settled=audit.declared_dims,
        next_command="look at the candidate, or at args, tuning and fixed in the audit file",
    )
