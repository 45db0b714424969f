"""Exports programs in subject workers and compiles their bytes in compile workers; makes the records."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.contract import Audit, FunctionRef, reference_to
from kernel_audit.errors import AuditError, InternalError
from kernel_audit.matrix.laboratory import Limits
from kernel_audit.records import CompiledRecord, CompilerReason, ProgramPlan
from kernel_audit.target.assembling import Compilation, record_of
from kernel_audit.target.described import DescribedTarget
from kernel_audit.target.environment import compiler_environment
from kernel_audit.target.spellings import Spelling
from kernel_audit.worker import Job, JobResult, Pool

CANDIDATE = "candidate"
ENGINE = "target"


@dataclass(frozen=True)
class Side:
    """A function to compile: the candidate, with its configurations and (`fixed`) the audit's fixed keywords, or a baseline,
    without. `first_dtype`: not in the others."""

    name: str
    function: FunctionRef
    tuned: bool
    configurations: tuple[dict[str, Any], ...] | None = None  # None: those that the audit declares for the target
    fixed: bool = True
    first_dtype: bool = False
    spelling: Spelling | None = None


@dataclass(frozen=True)
class Export:
    """One side exported for one target as one part; `folder` holds the bytes."""

    side: Side
    part: str
    plans: list[ProgramPlan]
    result: JobResult
    folder: Path


def sides_of(audit: Audit) -> list[Side]:
    """The candidate, then the baselines."""
    baselines = [Side(each.name, each.function, tuned=False) for each in audit.baselines]
    return [Side(CANDIDATE, audit.candidate, tuned=True), *baselines]


def configurations_for(audit: Audit, target: DescribedTarget) -> list[dict[str, Any]]:
    """The configurations that the audit declares for a target."""
    return audit.configurations_for(target.name)


def plans_of(audit: Audit, side: Side, target: DescribedTarget) -> list[ProgramPlan]:
    """A plan for each dtype, mode and configuration at the declared sizes."""
    configurations: list[dict[str, Any]] = [{}]
    if side.tuned:
        given = side.configurations
        configurations = list(given) if given is not None else configurations_for(audit, target)
    modes = audit.mode_choices()
    return [
        ProgramPlan(
            key=f"{target.name}/{side.name}/{number}",
            dims=audit.declared_dims,
            binding=binding,
            mode=mode,
            configuration=configuration,
            engine=ENGINE,
        )
        for number, (configuration, mode, binding) in enumerate(
            itertools.product(configurations, modes, audit.dtype_bindings()[: 1 if side.first_dtype else None])
        )
    ]


class Bench:
    """Workers and a folder for the compilations of one audit. Every job has a folder and a worker of its own."""

    def __init__(self, pool: Pool, work: Path, roots: list[Path], limits: Limits, audit: Audit) -> None:
        self.pool = pool
        self.work = work
        self.roots = roots
        self.limits = limits
        self.audit = audit
        self._numbers = itertools.count()

    def compile(self, target: DescribedTarget, sides: list[Side], *, in_step: bool = True) -> list[CompiledRecord]:
        """Records of all sides, in their order, each as a program on one device and, where the audit names its step, in it."""
        exports = self.exports(target, sides, in_step=in_step)
        compiled = self._compile_all(target, exports)
        return [
            self._record(target, export, plan, compiled.get((export.part, plan.key)))
            for export in exports
            for plan in export.plans
        ]

    def exports(self, target: DescribedTarget, sides: list[Side], *, in_step: bool = True) -> list[Export]:
        """Every side as bytes for the target, alone and in the audit's step; what could not be is told in the job's steps."""
        wanted = [(side, "program", None) for side in sides]
        if in_step and (step := self.step()) is not None:
            wanted += [(side, "step", step) for side in sides]
        with ThreadPoolExecutor(max_workers=4) as threads:
            return list(threads.map(lambda each: self._export(target, *each), wanted))

    def step(self) -> FunctionRef | None:
        """The audit's complete step."""
        if self.audit.workload is not None:
            return self.audit.workload.step
        return reference_to(self.audit.worth.step, where="worth: step") if self.audit.worth.step else None

    def _export(self, target: DescribedTarget, side: Side, part: str, step: FunctionRef | None) -> Export:
        plans = plans_of(self.audit, side, target)
        if step is not None and self.audit.workload is not None:  # the step may have other operands than the candidate
            plans = [msgspec.structs.replace(each, dims=self.audit.workload.declared) for each in plans]
        folder = self.work / f"export-{next(self._numbers)}"
        arguments = {
            "audit": msgspec.to_builtins(self.audit if side.fixed else msgspec.structs.replace(self.audit, fixed={})),
            "roots": [str(each) for each in self.roots],
            "function": msgspec.to_builtins(side.function),
            "programs": msgspec.to_builtins(plans),
            "target": {
                "kind": target.device.device_kind,
                "platform": target.export_platform,
                "backend": target.platform,
                "devices": target.devices,
            },
            "tuned": side.tuned,
            "step": msgspec.to_builtins(step) if step is not None else None,
            "spelling": msgspec.to_builtins(side.spelling) if side.spelling is not None else None,
        }
        job = self._job(
            "kernel_audit.target.export_job:export_programs",
            arguments,
            folder,
            jax_config={"jax_traceback_filtering": "off"},  # who raised is read from the frames
        )
        return Export(side, part, plans, self.pool.run(job), folder)

    def check(self, side: Side, spellings: list[Spelling], mode: dict[str, Any]) -> JobResult:
        """Whether respellings of a baseline are right: see `respelled.check_respellings`."""
        arguments = {
            "audit": msgspec.to_builtins(self.audit),
            "roots": [str(each) for each in self.roots],
            "function": msgspec.to_builtins(side.function),
            "spellings": msgspec.to_builtins(spellings),
            "mode": mode,
        }
        folder = self.work / f"check-{next(self._numbers)}"
        wide = {"jax_enable_x64": True}
        return self.pool.run(
            self._job("kernel_audit.target.respelled:check_respellings", arguments, folder, jax_config=wide)
        )

    def _job(self, function: str, arguments: dict[str, Any], folder: Path, **more: Any) -> Job:
        return Job(
            function=function,
            arguments=arguments,
            folder=folder,
            deadline_s=self.limits.deadline_s,
            memory_bytes=self.limits.memory_bytes,
            import_path=tuple(str(each) for each in self.roots),
            **more,
        )

    def _compile_all(self, target: DescribedTarget, exports: list[Export]) -> dict[tuple[str, str], dict[str, Any]]:
        """What became of each exported program. A program that ends its worker costs itself; the others go on in a new one."""
        waiting = [
            {"part": each.part, "key": key, "kernels": told["kernels"], "folder": str(each.folder)}
            for each in exports
            for key, told in each.result.steps.items()
            if "program" in told and "reason" not in told
        ]
        found: dict[tuple[str, str], dict[str, Any]] = {}
        while waiting:
            result = self._compile(target, waiting)
            for each in waiting:
                if (told := result.steps.get(_step_name(each))) is not None:
                    found[each["part"], each["key"]] = told
            if result.outcome == "raised" and result.audit_error() is None and result.step_in_progress:
                raise _own_fault(target, result)  # this worker runs our code alone
            open_step = result.step_in_progress
            if result.outcome == "finished" or open_step is None:
                if not result.steps and result.outcome != "finished":
                    raise _no_compiler(target, result)
                break
            ended = next(each for each in waiting if _step_name(each) == open_step)
            found[ended["part"], ended["key"]] = {"reason": _ended(result)}
            waiting = [each for each in waiting if (each["part"], each["key"]) not in found]
        return found

    def _compile(self, target: DescribedTarget, programs: list[dict[str, Any]]) -> JobResult:
        folder = self.work / f"compile-{next(self._numbers)}"
        arguments = {
            "target": {
                "name": target.name,
                "platform": target.platform,
                "topology": target.topology_name,
                "config": target.target_config(),
                "capability": ".".join(str(each) for each in target.device.compute_capability),
            },
            "programs": programs,
        }
        environment = compiler_environment(target.platform, folder)
        job = self._job("kernel_audit.target.compile_job:compile_programs", arguments, folder, environment=environment)
        return self.pool.run(job)

    def _record(
        self, target: DescribedTarget, export: Export, plan: ProgramPlan, compiled: dict[str, Any] | None
    ) -> CompiledRecord:
        exported = export.result.steps.get(plan.key)
        if exported is None:
            exported = {"reason": _ended(export.result)}
        imported = export.result.steps.get("import") or {}
        return record_of(
            Compilation(
                audit=self.audit,
                target=target if export.part == "step" else replace(target, devices=1),
                part=export.part,
                side=export.side.name,
                tuned=export.side.tuned,
                plan=plan,
                exported={"reads_backend": imported.get("reads_backend", []), **exported},
                compiled=compiled or {},
            )
        )


def _step_name(program: dict[str, Any]) -> str:
    return f"{program['part']} {program['key']}"


def _ended(result: JobResult) -> dict[str, Any]:
    """A worker that ended without an answer, as a reason."""
    error = dict(result.error or {})
    text = error.get("message") or error.get("what") or result.outcome
    if error.get("got"):
        text = f"{text}: {error['got']}"
    reason = CompilerReason(stage="worker", kind=error.get("type") or result.outcome, text=str(text)[:400])
    return msgspec.to_builtins(reason)


def _own_fault(target: DescribedTarget, result: JobResult) -> InternalError:
    told = dict(result.error or {})
    return InternalError(
        "a compiled program could not be read",
        stage="compile",
        where=f"{target.name}, {result.step_in_progress}, {told.get('where', '')}",
        expected="text that this tool can read",
        got=f"{told.get('type')}: {told.get('message')}"[:400],
        settled=target.compilers(),
    )


def _no_compiler(target: DescribedTarget, result: JobResult) -> AuditError:
    error = result.audit_error()
    if error is not None:
        return error
    told = dict(result.error or {})
    return AuditError(
        "the target's compiler could not be started",
        stage="compile",
        where=target.name,
        expected="a compile worker that describes its device",
        got=f"{told.get('type', result.outcome)}: {told.get('message', '')}"[:600],
        settled=target.compilers(),
        next_command="kernel-audit doctor",
    )
