"""Every kernel equation of a program, however deep, and how often the program runs it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernel_audit.program import compat
from kernel_audit.program.rewrite import inner_jaxprs

Found = tuple[str, Any, int | None, Any]


def kernel_equations(jaxpr: Any) -> Iterator[Found]:
    """(path, equation, trips, jaxpr that holds it) for every kernel, in order; `path` as in `Kernel.path`.

    `trips` is the product of the lengths of the loops around it, None where a length is not known. A branch counts as
    taken.
    """
    yield from _walk(jaxpr, "", 1)


def _walk(jaxpr: Any, path: str, trips: int | None) -> Iterator[Found]:
    around = compat.open_jaxpr(jaxpr)
    for position, equation in enumerate(around.eqns):
        name = equation.primitive.name
        if name in compat.KERNEL_PRIMITIVES:
            yield f"{path}{name}#{position}", equation, trips, around
            continue
        label = equation.params.get("name")
        here = f"{path}{name}:{label}/" if isinstance(label, str) else f"{path}{name}/"
        inside = _times(trips, loop_length(equation))
        for parameter, _, inner in inner_jaxprs(equation.params):
            yield from _walk(inner, here, inside if parameter != "cond_jaxpr" else None)


def _times(trips: int | None, length: int | None) -> int | None:
    return None if trips is None or length is None else trips * length


def loop_length(equation: Any) -> int | None:
    """How often the body of an equation runs: 1 for anything that is no loop, None where it is not known."""
    name = equation.primitive.name
    if name == "scan":
        return int(equation.params["length"])
    return _while_length(equation) if name == "while" else 1


def _while_length(equation: Any) -> int | None:
    """The length of a counted loop: a carried integer starts at a constant, grows by one, and is compared with one."""
    conditions = equation.params["cond_nconsts"]
    consts = conditions + equation.params["body_nconsts"]
    condition = compat.open_jaxpr(equation.params["cond_jaxpr"])
    body = compat.open_jaxpr(equation.params["body_jaxpr"])
    if len(condition.eqns) != 1 or condition.eqns[0].primitive.name != "lt":
        return None
    counter, bound = condition.eqns[0].invars
    start = _constant_of(equation.invars, consts, condition.invars, conditions, counter)
    limit = _constant_of(equation.invars, consts, condition.invars, conditions, bound)
    if counter not in condition.invars or start is None or limit is None:
        return None
    carried = condition.invars.index(counter) - conditions
    bound_carried = bound in condition.invars and condition.invars.index(bound) >= conditions
    if bound_carried and not _unchanged(body, equation, condition.invars.index(bound) - conditions):
        return None
    return max(limit - start, 0) if _grows_by_one(body, equation, carried) else None


def _constant_of(operands: Any, consts: int, inner: Any, conditions: int, atom: Any) -> int | None:
    if isinstance(atom, compat.Literal):
        return int(atom.val)
    if atom not in inner:
        return None
    index = inner.index(atom)
    outside = operands[index if index < conditions else consts + index - conditions]
    return int(outside.val) if isinstance(outside, compat.Literal) else None


def _grows_by_one(body: Any, equation: Any, carried: int) -> bool:
    variable = body.invars[equation.params["body_nconsts"] + carried]
    result = body.outvars[carried]
    for each in body.eqns:
        if result in each.outvars:
            literals = [int(atom.val) for atom in each.invars if isinstance(atom, compat.Literal)]
            return each.primitive.name == "add" and variable in each.invars and literals == [1]
    return False


def _unchanged(body: Any, equation: Any, carried: int) -> bool:
    return body.outvars[carried] is body.invars[equation.params["body_nconsts"] + carried]
