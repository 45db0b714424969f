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
) -> None:
    """Inspects one program a step: {"kernels": [KernelInspection, ...]}, those of its gradient among them where it has
    rules of its own for it. A plan's `engine` is the target that Pallas sees while it traces, all of one platform; `targets`
    as in `inspect_program`."""
    plans = msgspec.convert(programs, list[ProgramPlan])
    with claimed_backend(device_of(plans[0].engine).kind) as asked:
        subject = Subject(steps, audit, audit["candidate"], roots)
        for plan in plans:
            device_kind = device_of(plan.engine).device_kind
            with guarded_step(steps, plan.key, subject) as told:
                program = subject.capture(plan, tuned=True, device_kind=device_kind)
                found = _read(subject, program, plan.key, targets)
                found += _backwards(subject, plan, program, device_kind, targets)
                if asked:
                    found = [replace(each, findings=[*each.findings, _reads_backend(each, asked[0])]) for each in found]
                told.update(
                    kernels=msgspec.to_builtins(found),
                    operands=program.operands,
                    results=program.results,
                    digest=program.digest,
                )


def _reads_backend(kernel: KernelInspection, place: str) -> Finding:
    """`interpret=jax.default_backend() != "tpu"` and the like: what is compiled elsewhere would be no kernel."""
    return Finding(
        code="candidate-reads-backend",
        subject="kernel",
        text=f"{kernel.name}: {place} asks for jax.default_backend(); where that is another than the target's, another "
        "program is compiled",
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
