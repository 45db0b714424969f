"""Values that a program calculates before a kernel runs, from constants: with pure primitives of JAX, and no others.

What could run code of the program's author (callbacks, custom calls), draw, print or go on without end is never run: its
values are not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kernel_audit.inspect.integers import CALLS
from kernel_audit.inspect.walk import loop_length
from kernel_audit.program import compat
from kernel_audit.program.rewrite import inner_jaxprs

LARGEST_KNOWN = 10_000_000  # elements of a value that is calculated before a kernel runs
LONGEST_LOOP = 100_000  # steps of a loop that is run for a value

_PURE = frozenset({
    "abs", "add", "and", "argmax", "argmin", "argsort", "broadcast_in_dim", "ceil", "clamp", "concatenate",
    "convert_element_type", "copy", "copy_p", "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "div",
    "dynamic_slice", "dynamic_update_slice", "eq", "eq_to", "exp", "exp2", "expand_dims", "floor", "gather", "ge",
    "gt", "integer_pow", "iota", "is_finite", "le", "le_to", "log", "lt", "lt_to", "max", "min", "mul", "ne", "neg",
    "not", "or", "pad", "population_count", "pow", "reduce_and", "reduce_max", "reduce_min", "reduce_or",
    "reduce_prod", "reduce_sum", "rem", "reshape", "rev", "round", "scatter", "scatter-add", "scatter_add",
    "scatter_max", "scatter_min", "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign",
    "slice", "sort", "split", "sqrt", "square", "squeeze", "stop_gradient", "sub", "tile", "transpose", "unstack", "xor",
})  # fmt: skip
# Their inner jaxprs are looked at, too. A rule of the author's for derivatives is no part of the value.
_HOLDING = frozenset({"cond", "scan", "while"}) | CALLS


def calculated(equation: Any, operands: Sequence[Any]) -> list[np.ndarray] | None:
    """The results of an equation, None where it is not certainly pure and small enough."""
    if not _may_run(equation, 1):
        return None
    try:
        found = equation.primitive.bind(*operands, **equation.params)
    except Exception:  # a value that cannot be calculated outside of its program is not known
        return None
    return list(found) if equation.primitive.multiple_results else [found]


def _may_run(equation: Any, times: int) -> bool:
    """Whether an equation that runs so many times is pure, ends, and makes no large array."""
    name, length = equation.primitive.name, loop_length(equation)
    if equation.effects or _too_large(equation) or length is None or times * length > LONGEST_LOOP:
        return False
    inner = list(_inner_equations(equation))
    if name in _HOLDING:
        return all(_may_run(each, times * length) for each in inner)
    if (
        name == "call_hi_primitive"
    ):  # from 0.12 on JAX has primitives of its own that it lowers late; an author may have, too
        return type(equation.params["_prim"]).__module__.startswith("jax.")
    combines = name.startswith(("scatter", "reduce"))  # the function with which values are combined
    return name in _PURE and (combines or not inner)


def _too_large(equation: Any) -> bool:
    return any(np.prod(getattr(each.aval, "shape", ()), dtype=float) > LARGEST_KNOWN for each in equation.outvars)


def _inner_equations(equation: Any) -> Iterator[Any]:
    for _, _, jaxpr in inner_jaxprs(equation.params):
        yield from compat.open_jaxpr(jaxpr).eqns
