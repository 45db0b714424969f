"""The complete step that a candidate is a part of: `complete_step`, and what it must satisfy. No JAX.

The word is not called `workload`, as the package `kernel_audit.workload` is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kernel_audit.contract.dtypes import SHORT, full_name
from kernel_audit.contract.functions import reference_to
from kernel_audit.contract.model import Audit, FunctionRef, Operand, StepPrecision, Workload
from kernel_audit.contract.spec import LARGEST, parse_operands
from kernel_audit.errors import AuditFileError, near

REGIONS = (
    "local-arithmetic",
    "input-staging",
    "resharding",
    "communication",
    "padding-and-cropping",
    "update",
    "dispatch",
)
MOST_UPDATES = 100
WIDEST = 1e-2  # a bound above this would let a wrong aggregation through
_REGION = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_REMAT = re.compile(r"none|all|(save|offload):[A-Za-z_][\w.-]*(,[A-Za-z_][\w.-]*)*")


@dataclass(frozen=True)
class StatedStep:
    """What `complete_step` was given. Its operands are read when the audit's dimensions and dtype variables are known."""

    functions: dict[str, FunctionRef | None]
    args: list[str] | None
    dims: Mapping[str, int]
    fields: dict[str, Any]


def complete_step(
    step: Callable[..., Any] | str,
    *,
    examples: str,
    state: Mapping[str, int],
    loss: int,
    host: Callable[..., Any] | str | None = None,
    gradient: Mapping[str, int] | None = None,
    inputs: Callable[..., Any] | str | None = None,
    args: list[str] | None = None,
    dims: Mapping[str, int] | None = None,
    candidate_step: Callable[..., Any] | str | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    updates: int = 5,
    within: float = 1e-6,
    compute: str = "f32",
    parameters: str = "f32",
    output: str = "f32",
    region: str = "local-arithmetic",
    remat: str = "none",
) -> StatedStep:
    """The complete sharded step, for `audit(workload=complete_step("train.py:step", ...))`. The fields are those of `Workload`.

    `args` are the step's operands, as text like those of `audit`; without them they are the audit's own. `dims` are the sizes
    at which it is run on a CPU; dimensions that are not named keep their declared size.

    Raises AuditFileError for functions that another process cannot find and for dtypes that nobody knows.
    """
    given = {"step": step, "host": host, "inputs": inputs, "candidate_step": candidate_step}
    functions = {
        key: None if each is None else reference_to(each, where=f"workload: {key}") for key, each in given.items()
    }
    stated = {"compute": compute, "parameters": parameters, "output": output}
    precision = StepPrecision(**{key: _dtype(name, key) for key, name in stated.items()})
    fields = {
        "examples": examples,
        "state": dict(state),
        "loss": loss,
        "gradient": dict(gradient or {}),
        "options": dict(options or {}),
        "seed": seed,
        "updates": updates,
        "within": within,
        "precision": precision,
        "region": region,
        "remat": remat,
    }
    return StatedStep(functions, args, dict(dims or {}), fields)


def workload_of(
    stated: StatedStep | None, operands: list[Operand], sizes: Mapping[str, int], variables: Mapping[str, list[str]]
) -> Workload | None:
    """The record of what was stated, in an audit of these operands, dimensions and dtype variables.

    Raises AuditFileError for anything but what `complete_step` gives, and as `parse_operands` does.
    """
    if stated is None:
        return None
    if not isinstance(stated, StatedStep):
        raise AuditFileError(
            "a workload of another form",
            stage="audit",
            where="workload",
            expected='complete_step("train.py:step", examples="n", state={"w": 0}, loss=1)',
            got=repr(stated),
        )
    declared = dict(sizes)
    if stated.args is not None:
        operands, declared = parse_operands(stated.args, variables, where="workload: args")
    used = {dim for each in operands for dim in each.dims if isinstance(dim, str)}
    declared = {name: size for name, size in declared.items() if name in used}
    return Workload(
        operands=operands, declared=declared, dims={**declared, **stated.dims}, **stated.functions, **stated.fields
    )


def _dtype(text: str, key: str) -> str:
    name = full_name(text)
    if name is None:
        raise AuditFileError(
            "an unknown dtype",
            stage="audit",
            where=f"workload: {key}",
            expected="one of " + ", ".join(SHORT),
            got=near(text, [*SHORT, *SHORT.values()]),
        )
    return name


def check_workload(audit: Audit) -> None:
    """Raises AuditFileError at the first thing of the audit's workload that cannot hold."""
    workload = audit.workload
    if workload is None:
        return
    for check in (_check_sizes, _check_places, _check_bounds, _check_precision):
        check(audit, workload)
    stated = audit.worth.step
    if stated is not None and stated != workload.step.text:
        raise _fault(audit, "two complete steps", "step", f"that of worth: {stated}", workload.step.text)


def _fault(audit: Audit, what: str, key: str, expected: str, got: str) -> AuditFileError:
    workload = audit.workload
    assert workload is not None
    return AuditFileError(
        what,
        stage="audit",
        where=f"audit {audit.name!r}: workload: {key}",
        expected=expected,
        got=got,
        settled={"operands": " ".join(each.name for each in workload.operands), **workload.declared},
    )


def _check_sizes(audit: Audit, workload: Workload) -> None:
    known = workload.declared
    for name, size in workload.dims.items():
        if name not in known:
            raise _fault(audit, "an unknown dimension", "dims", "one of " + ", ".join(known), near(name, known))
        if isinstance(size, bool) or not 1 <= size <= LARGEST:
            raise _fault(audit, "a dimension below one", "dims", "a size of 1 or more", f"{name}={size}")
    if workload.examples not in known:
        raise _fault(
            audit, "an unknown dimension", "examples", "one of " + ", ".join(known), near(workload.examples, known)
        )
    twice = [each.name for each in workload.operands if each.dims.count(workload.examples) > 1]
    if twice:
        raise _fault(audit, "examples along two dimensions of one operand", "examples", "one dimension", twice[0])


def _check_places(audit: Audit, workload: Workload) -> None:
    names = {each.name: each for each in workload.operands}
    if not workload.state:
        raise _fault(
            audit, "a step that updates nothing", "state", 'such as {"w": 0}: operand, place of its result', "{}"
        )
    for key, table in (("state", workload.state), ("gradient", workload.gradient)):
        for name in table:
            if name not in names:
                raise _fault(audit, "an unknown operand", key, "one of " + ", ".join(names), near(name, names))
            if workload.examples in names[name].dims:
                raise _fault(audit, "a parameter that has examples", key, "an operand that all devices share", name)
            if name not in workload.state:
                raise _fault(
                    audit, "a gradient of what is not updated", key, "one of " + ", ".join(workload.state), name
                )
    places = [*workload.state.values(), workload.loss, *workload.gradient.values()]
    if min(places) < 0 or len(set(places)) < len(places):
        raise _fault(
            audit, "places of results that cannot be", "state, loss, gradient", "distinct, from 0", str(places)
        )


def _check_bounds(audit: Audit, workload: Workload) -> None:
    if not 1 <= workload.updates <= MOST_UPDATES:
        raise _fault(
            audit, "a number of updates out of reach", "updates", f"1 to {MOST_UPDATES}", str(workload.updates)
        )
    if not 0 < workload.within <= WIDEST:
        raise _fault(
            audit,
            "a bound that shows nothing",
            "within",
            f"a relative error above 0, at most {WIDEST}",
            str(workload.within),
        )
    if workload.seed < 0:
        raise _fault(audit, "a seed below zero", "seed", "0 or more", str(workload.seed))
    if not _REGION.fullmatch(workload.region):
        expected = f"lower-case words joined by '-': {', '.join(REGIONS)}, or one of your own"
        raise _fault(audit, "a region that is no name", "region", expected, repr(workload.region))
    if not _REMAT.fullmatch(workload.remat):
        expected = "none, all, save:NAME,... or offload:NAME,..."
        raise _fault(audit, "a checkpoint policy that cannot be read", "remat", expected, repr(workload.remat))


def _check_precision(audit: Audit, workload: Workload) -> None:
    for each in workload.operands:
        if each.name in workload.state and each.dtype != workload.precision.parameters:
            raise _fault(
                audit,
                "parameters of another dtype than stated",
                "parameters",
                f"{each.name}: {each.dtype}, as its operand is",
                workload.precision.parameters,
            )
