"""Job of `inspect`: captures programs of a candidate and reads their kernels. Runs in a subject worker; runs no kernel."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from kernel_audit.inspect import inspect_program
from kernel_audit.matrix.subject_job import Subject, guarded_step
from kernel_audit.program import CandidateRaised, Program, claimed_backend
from kernel_audit.program.rewrite import inner_jaxprs
from kernel_audit.records import Finding, KernelInspection, ProgramPlan, device_of

GRADIENT = "gradient"


def inspect_programs(
    steps: Any,
    *,
    audit: dict[str, Any],
    roots: list[str],
    programs: list[dict[str, Any]],
    targets: list[str] | None,
    device: str,
) -> None:
    """Inspects one program a step: {"kernels": [KernelInspection, ...]}, those of its gradient among them where it has
    rules of its own for it. `device` is the target that Pallas sees while it traces; `targets` as in `inspect_program`."""
    described = device_of(device)
    backend = "gpu" if described.kind == "gpu" else "tpu"
    with claimed_backend(backend) as asked:
        subject = Subject(steps, audit, audit["candidate"], roots)
        for plan in msgspec.convert(programs, list[ProgramPlan]):
            with guarded_step(steps, plan.key, subject) as told:
                program = subject.capture(plan, tuned=True, device_kind=described.device_kind)
                found = _read(subject, program, plan.key, targets)
                found += _backwards(subject, plan, program, described.device_kind, targets)
                if asked:
                    found = [replace(each, findings=[*each.findings, _reads_backend(each)]) for each in found]
                told.update(
                    kernels=msgspec.to_builtins(found),
                    operands=program.operands,
                    results=program.results,
                    digest=program.digest,
                )


def _reads_backend(kernel: KernelInspection) -> Finding:
    """`interpret=jax.default_backend() != "tpu"` and the like: what is compiled elsewhere would be no kernel."""
    return Finding(
        code="candidate-reads-backend",
        subject="kernel",
        text=f"{kernel.name}: the candidate asks for jax.default_backend() while it is imported or traced; where that is "
        "another than its target's, another program is compiled",
        records=[kernel.path],
    )


def _read(subject: Subject, program: Program, key: str, targets: list[str] | None) -> list[KernelInspection]:
    return inspect_program(program, key=key, targets=targets, arithmetic=subject.audit.precision.arithmetic)


def _backwards(
    subject: Subject, plan: ProgramPlan, program: Program, device_kind: str, targets: list[str] | None
) -> list[KernelInspection]:
    """Kernels of the pullback that the program itself does not hold: a traced call shows no rule for its gradient."""
    if not _has_rules(program.jaxpr):
        return []
    known = {each.digest for each in program.kernels}
    try:
        pulled = subject.pullback(plan, device_kind)
    except CandidateRaised:
        return []  # not differentiable at these operands: the contract does not say that it should be
    found = _read(subject, pulled, f"{plan.key}/{GRADIENT}", targets)
    return [each for each in found if each.digest not in known]


def _has_rules(jaxpr: Any) -> bool:
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        if equation.primitive.name.startswith("custom_vjp"):
            return True
        if any(_has_rules(inner) for _, _, inner in inner_jaxprs(equation.params)):
            return True
    return False
