"""`inspect`: an audit's kernels read before anything runs. The parent's side; imports no JAX, no candidate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.conduct.evaluation import evaluate
from kernel_audit.conduct.question import Question, localised, roots_of
from kernel_audit.contract import Audit
from kernel_audit.errors import AuditFileError, CaptureError, InternalError, from_parts
from kernel_audit.matrix.check import Progress
from kernel_audit.records import KernelInspection, ProgramPlan, Record, device_of
from kernel_audit.target.described import DEFAULT_TARGETS
from kernel_audit.worker import Job, JobResult, Pool
from kernel_audit.worker.scratch import scratch_folder

PRELOAD = ("kernel_audit.matrix.audit_job", "kernel_audit.matrix.inspect_job")


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

    `targets` are described devices; without any, those of the audit. A configuration that is declared for none of them is
    left out. An audit needs neither baselines nor worth here.

    Raises AuditFileError, TargetError for a target that is not described, CaptureError where no program could be
    captured at all.
    """
    described = [device_of(each).name for each in targets]
    roots = roots_of(question)
    with scratch_folder() as work, Pool(size=1, preload=PRELOAD) as pool:
        progress("reading the audit", 0, None)
        audit, _ = evaluate(localised(question), pool, Path(work, "audit"))
        wanted = described or audit.targets
        plans = program_plans(audit, wanted)
        told: dict[str, JobResult] = {}
        for kind in dict.fromkeys(device_of(each.engine).kind for each in plans):
            own = [each for each in plans if device_of(each.engine).kind == kind]
            progress("reading kernels", len(told), len(plans))
            result = pool.run(_job(audit, own, wanted, roots, question, Path(work, kind)))
            told.update(dict.fromkeys([each.key for each in own], result))
        return _told(audit, plans, told)


def _job(
    audit: Audit,
    plans: list[ProgramPlan],
    targets: list[str] | None,
    roots: list[Path],
    question: Question,
    folder: Path,
) -> Job:
    """One worker for the programs of one platform: what a module is told of the backend when it is imported stays."""
    arguments = {
        "audit": msgspec.to_builtins(audit),
        "roots": [str(each) for each in roots],
        "programs": msgspec.to_builtins(plans),
        "targets": targets,
    }
    return Job(
        function="kernel_audit.matrix.inspect_job:inspect_programs",
        arguments=arguments,
        folder=folder,
        deadline_s=question.limits.deadline_s,
        memory_bytes=question.limits.memory_bytes,
        import_path=tuple(str(each) for each in roots),
    )


def program_plans(audit: Audit, targets: Sequence[str] | None = None) -> list[ProgramPlan]:
    """One program for each configuration, mode and dtype, at the declared sizes. `engine` is the target that Pallas sees
    while it is traced: the first that the configuration is declared for."""
    devices = _devices(audit, targets or DEFAULT_TARGETS)
    choices = [(c, d, m, b) for c, d in devices for m in audit.mode_choices() for b in audit.dtype_bindings()]
    return [
        ProgramPlan(
            key=f"p{index:03d}",
            dims=audit.declared_dims,
            binding=binding,
            mode=mode,
            configuration=configuration,
            engine=device,
        )
        for index, (configuration, device, mode, binding) in enumerate(choices)
    ]


def _devices(audit: Audit, targets: Sequence[str]) -> list[tuple[dict[str, Any], str]]:
    """Each configuration with the first target that it is declared for; those of no target are left out."""
    found = []
    for configuration in audit.configurations():
        own = [each for each in targets if configuration in audit.configurations_for(each)]
        found += [(configuration, own[0])] if own else []
    if found:
        return found
    raise AuditFileError(
        "no configuration for these targets",
        stage="inspect",
        where=f"audit {audit.name!r}: tuning",
        expected="a configuration declared for one of " + ", ".join(targets),
        got="none",
        next_command="kernel-audit inspect without --target, or on(...) in the audit's tuning",
    )


def _told(audit: Audit, plans: list[ProgramPlan], results: dict[str, JobResult]) -> Inspection:
    """The records that the workers told, by program. Raises CaptureError where there is none."""
    programs, kernels = [], []
    for plan in plans:
        told = results[plan.key].steps.get(plan.key)
        made = _program(plan, told, results[plan.key])
        found = msgspec.convert(told["kernels"], list[KernelInspection]) if told and "kernels" in told else []
        programs.append(msgspec.structs.replace(made, kernels=len(found)))
        kernels += found
    if not any(each.digest for each in programs):
        raise _nothing(audit, programs, results[plans[0].key])
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
