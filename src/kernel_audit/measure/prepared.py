"""Programs of a comparison as files of bytes, made in workers that import the audit's files and touch no device."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.contract import Audit, Door
from kernel_audit.contract.ablations import twin_configurations
from kernel_audit.errors import AuditFileError, TargetError
from kernel_audit.matrix.laboratory import Limits
from kernel_audit.matrix.plan import text_of
from kernel_audit.measure.comparison import WIDE, Comparison, audit_at
from kernel_audit.records import ABLATION, CPU, STEP, ProgramPlan, digest_of
from kernel_audit.target.bench import CANDIDATE, Bench, Export, Side, configurations_for, sides_of
from kernel_audit.target.described import DescribedTarget
from kernel_audit.worker import Job, read_arrays

REFERENCES = "kernel_audit.measure.reference_job:references"


@dataclass(frozen=True)
class Prepared:
    """One program: `place` is its file of bytes, None where it could not be made; `refused` says why."""

    role: str
    name: str
    configuration: dict[str, Any]
    place: Path | None
    told: dict[str, Any] = field(default_factory=dict)
    refused: str = ""

    @property
    def id(self) -> str:
        return f"{self.role}: {self.name}"


@dataclass(frozen=True)
class Ready:
    """A comparison with its programs and the reference (arguments of `audit_task`)."""

    comparison: Comparison
    programs: list[Prepared]
    reference: dict[str, Any]

    def of(self, role: str) -> list[Prepared]:
        return [each for each in self.programs if each.role == role]


class Preparing:
    """Exports and references for comparisons on one target. `engine` runs jobs: a `Pool`, or on a device machine one without
    a sandbox."""

    def __init__(self, engine: Any, work: Path, roots: list[Path], limits: Limits, audit: Audit) -> None:
        self.engine, self.work, self.roots, self.limits, self.audit = engine, work, roots, limits, audit
        self._numbers = itertools.count()

    def ready(self, target: DescribedTarget, comparisons: list[Comparison]) -> list[Ready]:
        """Each comparison, in order. Raises TargetError for a kernel that would be interpreted, AuditError for an audit that
        cannot be exported at all."""
        made = []
        for _, group in itertools.groupby(comparisons, key=lambda each: digest_of(each.dims)):
            made += self._at_size(target, list(group))
        return made

    def _at_size(self, target: DescribedTarget, comparisons: list[Comparison]) -> list[Ready]:
        audit = audit_at(self.audit, comparisons[0].dims)
        bench = Bench(self.engine, self._folder("exports"), self.roots, self.limits, audit)
        if target.platform == CPU:  # every configuration is tried there, whatever target it is for
            audit = msgspec.structs.replace(audit, tuning=_one_table(audit))
            bench.audit = audit
        elif audit.door is not None:
            bench.audit = msgspec.structs.replace(audit, fixed={**audit.fixed, **_opened(audit.door, target.platform)})
        sides = [*sides_of(audit), *_twin_sides(bench.audit, target)]
        exports = bench.exports(target, sides, in_step=any(each.part == STEP for each in comparisons))
        return [
            Ready(each, self._programs(target, exports, each), self._reference(audit, bench, each))
            for each in comparisons
        ]

    def _programs(self, target: DescribedTarget, exports: list[Export], comparison: Comparison) -> list[Prepared]:
        found = []
        for export in (each for each in exports if each.part == comparison.part):
            plans = [
                each for each in export.plans if (each.binding, each.mode) == (comparison.binding, comparison.mode)
            ]
            found += [self._program(target, export, each, len(plans) > 1) for each in plans]
        return found

    def _program(self, target: DescribedTarget, export: Export, plan: ProgramPlan, several: bool) -> Prepared:
        role = _role(self.audit, export.side)
        name = (
            f"{export.side.name} {text_of(plan.configuration)}" if export.side.tuned and several else export.side.name
        )
        error = export.result.audit_error()
        if error is not None and (role != ABLATION or isinstance(error, AuditFileError)):
            raise error
        told = dict(export.result.steps.get(plan.key) or {})
        try:
            if role != "baseline":
                _refuse_interpreted(target, told, name)
        except TargetError as refusal:
            if role != ABLATION:
                raise
            return Prepared(role, name, plan.configuration, None, told, f"{refusal.what}: {refusal.got}")
        if "program" not in told or "reason" in told:
            return Prepared(role, name, plan.configuration, None, told, _why(told, export))
        place = self._folder("programs") / "bytes"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(read_arrays(export.folder, plan.key)["bytes"].tobytes())
        return Prepared(role, name, plan.configuration, place, told)

    def _reference(self, audit: Audit, bench: Bench, comparison: Comparison) -> dict[str, Any]:
        plan = ProgramPlan(
            key="reference", dims=comparison.dims, binding=comparison.binding, mode=comparison.mode, engine="reference"
        )
        step = bench.step() if comparison.part == STEP else None
        folder = self._folder("references")
        job = Job(
            REFERENCES,
            {
                "audit": msgspec.to_builtins(audit),
                "roots": [str(each) for each in self.roots],
                "programs": msgspec.to_builtins([plan]),
                "step": msgspec.to_builtins(step) if step is not None else None,
            },
            folder,
            deadline_s=self.limits.deadline_s,
            memory_bytes=self.limits.memory_bytes,
            jax_config={"jax_enable_x64": True},
            environment={"JAX_PLATFORMS": "cpu"},
            import_path=tuple(str(each) for each in self.roots),
        )
        result = self.engine.run(job)
        error = result.audit_error()
        if error is None and plan.key not in result.steps:
            told = dict(result.error or {})
            error = AuditFileError(
                "the first baseline gives no reference",
                stage="measure",
                where=comparison.text,
                expected="a baseline that can be traced, alone and in the step",
                got=f"{told.get('type', result.outcome)}: {told.get('message', '')}"[:300],
            )
        if error is not None:
            raise error
        return {"folder": str(folder.resolve()), "step": plan.key, "wide": result.steps[plan.key][WIDE]}

    def _folder(self, name: str) -> Path:
        return self.work / f"{name}-{next(self._numbers)}"


def _twin_sides(audit: Audit, target: DescribedTarget) -> list[Side]:
    """The audit's ablations, each in every configuration of the candidate: which one is chosen is not known yet."""
    configurations = configurations_for(audit, target)
    return [
        Side(
            each.name,
            each.function or audit.candidate,
            tuned=True,
            configurations=tuple(twin_configurations(each, configurations)),
        )
        for each in audit.ablations
    ]


def _role(audit: Audit, side: Side) -> str:
    if side.name == CANDIDATE:
        return "candidate"
    return ABLATION if any(each.name == side.name for each in audit.ablations) else "baseline"


def _opened(door: Door, platform: str) -> dict[str, Any]:
    """The keywords by which the candidate is told to run on the target; a value that names a platform names this one."""
    return {key: platform if value in ("tpu", "gpu") else value for key, value in door.keywords.items()}


def _one_table(audit: Audit) -> dict[str, list[Any]] | list[Any]:
    """A CPU is no target of any table: all tables serve it."""
    if isinstance(audit.tuning, dict):
        return audit.tuning
    return [msgspec.structs.replace(each, targets=[*each.targets, CPU]) for each in audit.tuning]


def _refuse_interpreted(target: DescribedTarget, told: dict[str, Any], name: str) -> None:
    """Raises TargetError for a kernel that a CPU would interpret, and for one that asks for it on the target, too."""
    kernels = told.get("kernels") or []
    if target.platform == CPU and kernels:
        raise TargetError(
            "an interpreted kernel is never timed",
            stage="measure",
            where=f"{name}: {', '.join(each['name'] for each in kernels)}",
            expected="--target cpu for a program without a Pallas kernel",
            got="a kernel, which a CPU can only interpret",
            next_command="kernel-audit measure AUDIT --target tpu (or gpu), on a machine with one",
        )
    asked = [
        each for each in kernels if each.get("live", True) and each.get("authored_interpret") not in ("False", None)
    ]
    if asked:
        raise TargetError(
            "the kernel asks to be interpreted, also where the target is; a simulation is never timed",
            stage="measure",
            where=f"{name}: {asked[0]['name']}",
            expected="interpret=False where jax.default_backend() is the target",
            got=f"interpret={asked[0]['authored_interpret']}",
            next_command='interpret=jax.default_backend() != "tpu" (or "gpu"), or the door of the audit',
        )


def _why(told: dict[str, Any], export: Export) -> str:
    reason = told.get("reason") or {}
    text = f"{reason.get('kind', '')}: {reason.get('text', '')}" if reason else ""
    error = export.result.error or {}
    return (text or f"{error.get('type', export.result.outcome)}: {error.get('message', '')}")[:400]
