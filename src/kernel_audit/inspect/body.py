"""What a kernel's body calculates: casts in order, matrix products with their precision, operations, primitives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernel_audit.inspect.equation import array_text
from kernel_audit.inspect.walk import loop_length
from kernel_audit.program import compat
from kernel_audit.program.rewrite import inner_jaxprs
from kernel_audit.records import Dot

# One operation for each element of the result. Moves, comparisons, selections and casts are none.
_ELEMENTWISE = frozenset(
    {
        *(
            "add",
            "sub",
            "mul",
            "div",
            "max",
            "min",
            "rem",
            "neg",
            "abs",
            "pow",
            "integer_pow",
            "square",
            "sqrt",
            "rsqrt",
        ),
        *("exp", "exp2", "expm1", "log", "log1p", "tanh", "logistic", "sin", "cos", "erf", "sign", "floor", "ceil"),
        *("addupdate", "cbrt", "atan2", "clamp", "round"),
    }
)
_REDUCTIONS = frozenset({"reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "cumsum", "argmax", "argmin"})


def equations_within(body: Any) -> Iterator[Any]:
    """Every equation of a body at every depth, in order."""
    for equation in compat.open_jaxpr(body).eqns:
        yield equation
        for _, _, inner in inner_jaxprs(equation.params):
            yield from equations_within(inner)


def whole_accesses(body: Any, reference: Any) -> int | None:
    """How often a program loads or stores all of a reference; None where it does so in part, or where that depends."""
    times = 0
    for equation in compat.open_jaxpr(body).eqns:
        if not any(each is reference for each in equation.invars):
            continue
        if equation.primitive.name not in ("get", "swap") or equation.invars[0] is not reference:
            return None  # masked, or in a branch, a loop or a call
        moved = (equation.outvars[0] if equation.primitive.name == "get" else equation.invars[1]).aval
        if math.prod(moved.shape) != math.prod(reference.aval.shape):
            return None
        times += 1
    return times


def casts(body: Any) -> list[str]:
    """Casts of arrays of numbers, in order: "float32 -> bfloat16"."""
    found = []
    for equation in equations_within(body):
        if equation.primitive.name != "convert_element_type":
            continue
        source = equation.invars[0].aval
        if getattr(source, "shape", ()) and np.dtype(source.dtype).kind != "b":
            found.append(f"{source.dtype} -> {np.dtype(equation.params['new_dtype']).name}")
    return found


def dots(body: Any) -> list[Dot]:
    """Matrix products, in order."""
    return [
        Dot(
            left=_text(each.invars[0].aval),
            right=_text(each.invars[1].aval),
            result=_text(each.outvars[0].aval),
            precision=precision_of(each),
        )
        for each in equations_within(body)
        if each.primitive.name == "dot_general"
    ]


def _text(aval: Any) -> str:
    return array_text(aval.shape, aval.dtype)


def precision_of(equation: Any) -> str:
    """The declared precision of a matrix product: "default", "high", "highest", or the name of an algorithm."""
    stated = equation.params.get("precision")
    parts = stated if isinstance(stated, tuple) else (stated,)
    names = {"default" if each is None else str(getattr(each, "name", each)).lower() for each in parts}
    return "/".join(sorted(names))


def operations(body: Any, unknown_loop: int | None = None) -> int | None:
    """Arithmetic operations of one program as written: of a branch the larger side, of a loop every trip.

    `unknown_loop` is the length to take for a loop that does not state its own; without it the answer is None.
    """
    total = 0
    for equation in compat.open_jaxpr(body).eqns:
        name = equation.primitive.name
        inner = [operations(each, unknown_loop) for _, _, each in inner_jaxprs(equation.params)]
        if any(each is None for each in inner):
            return None
        counts = [each for each in inner if each is not None]
        if name == "cond":
            total += max(counts, default=0)
        elif counts and sum(counts):
            length = loop_length(equation)
            length = unknown_loop if length is None else length
            if length is None:
                return None
            total += length * sum(counts)
        else:
            total += _own_operations(equation)
    return total


def _own_operations(equation: Any) -> int:
    name = equation.primitive.name
    if name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        left = equation.invars[0].aval.shape
        return 2 * math.prod(equation.outvars[0].aval.shape) * math.prod(left[axis] for axis in contracted)
    if name in _REDUCTIONS:
        return math.prod(equation.invars[0].aval.shape)
    if name not in _ELEMENTWISE:
        return 0
    aval = (equation.outvars or equation.invars)[0].aval
    return math.prod(aval.shape) if getattr(aval, "shape", ()) else 0
