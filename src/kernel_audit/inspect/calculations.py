"""What stands around the kernels of a captured program: a contract may let it move values, and calculate none.

A kernel that only copies, or one that is looked at and then left aside, would pass any comparison of values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kernel_audit.program import Generic, Program
from kernel_audit.program.compat import KERNEL_PRIMITIVES, Literal, open_jaxpr, without_dead_code
from kernel_audit.program.rewrite import inner_jaxprs

# Primitives that put values elsewhere, repeat them or leave some out. A cast is one: what the contract says of rounding shows
# in the values.
MOVING = frozenset({
    "broadcast_in_dim", "concatenate", "convert_element_type", "copy", "copy_p", "device_put", "dynamic_slice",
    "dynamic_update_slice", "expand_dims", "freeze", "gather", "get", "layout_constraint", "mutable_array",
    "new_ref", "optimization_barrier", "pad", "pvary", "reshape", "reshard", "rev", "scatter",
    "sharding_constraint", "slice", "split", "squeeze", "stack", "swap", "tile", "transpose", "unstack",
})  # fmt: skip


def calculations(program: Program) -> list[str]:
    """Names of the primitives outside of every kernel that calculate with what comes from the operands, each once.

    Sizes, indices and masks that depend on no operand may be calculated. What no result depends on does not count, and
    neither does what gives no result (a print).
    """
    live = without_dead_code(program.in_mode(Generic()))
    return list(dict.fromkeys(_calculating(live, [True] * len(live.invars))[0]))


def _calculating(jaxpr: Any, from_operands: list[bool]) -> tuple[list[str], bool]:
    """What calculates in a jaxpr of which these inputs come from operands, and whether a result comes from any."""
    opened = open_jaxpr(jaxpr)
    derived = {each for each, given in zip(opened.invars, from_operands, strict=True) if given}
    found: list[str] = []
    for equation in opened.eqns:
        given = [not isinstance(each, Literal) and each in derived for each in equation.invars]
        if equation.primitive.name in KERNEL_PRIMITIVES:
            derived |= _variables(equation.invars) | set(
                equation.outvars
            )  # references that it writes are among the former
            continue
        names, derives = _in_equation(equation, given)
        found += names
        if derives:
            derived |= set(equation.outvars) | _variables(
                equation.invars[:1] if equation.primitive.name == "swap" else []
            )
    return found, bool(derived & _variables(opened.outvars))


def _in_equation(equation: Any, given: list[bool]) -> tuple[list[str], bool]:
    name = equation.primitive.name
    inner = [each for _, _, each in inner_jaxprs(equation.params)]
    if inner and not name.startswith(("scatter", "reduce")):  # else: the function with which values are combined
        told = [_calculating(each, _aligned(each, given)) for each in inner]
        return [each for names, _ in told for each in names], any(given) or any(derives for _, derives in told)
    calculates = any(given) and name not in MOVING and bool(equation.outvars)
    return [name] if calculates else [], any(given)


def _aligned(inner: Any, given: list[bool]) -> list[bool]:
    """A jaxpr of an equation takes the equation's operands from the last on: a branch has no index, a loop's body no
    operands of its condition."""
    count = len(open_jaxpr(inner).invars)
    return [True] * (count - len(given)) + given[max(0, len(given) - count) :]


def _variables(atoms: Iterable[Any]) -> set[Any]:
    return {each for each in atoms if not isinstance(each, Literal)}
