"""Integer arithmetic of a jaxpr on NumPy arrays: what index maps and conditions say, for many grid points at once.

Arrays broadcast against each other, so that an index that depends on one axis of the grid costs as many elements as that
axis has points. Nothing is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kernel_audit.program import compat
from kernel_audit.program.rewrite import inner_jaxprs


class NotInteger(Exception):
    """The jaxpr does something that this arithmetic does not know, or reads a value that was not given."""


def _divided(a: Any, b: Any) -> Any:
    """As JAX divides integers: towards zero."""
    quotient = np.floor_divide(a, b)
    inexact = (np.remainder(a, b) != 0) & ((np.asarray(a) < 0) != (np.asarray(b) < 0))
    return quotient + inexact


def _selected(which: Any, *cases: Any) -> Any:
    if len(cases) == 2:
        return np.where(np.asarray(which).astype(bool), cases[1], cases[0])
    return np.choose(which, cases)


_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "neg": np.negative,
    "sign": np.sign,
    "abs": np.abs,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": lambda a: np.logical_not(a) if np.asarray(a).dtype == bool else np.bitwise_not(a),
    "rem": np.fmod,
    "div": _divided,
    "shift_left": np.left_shift,
    "shift_right_arithmetic": np.right_shift,
    "select_n": _selected,
    "clamp": lambda low, x, high: np.minimum(np.maximum(x, low), high),
    "stop_gradient": lambda a: a,
    "copy": lambda a: a,
}
CALLS = frozenset(
    {"jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat", "checkpoint"}
)


def evaluate(jaxpr: Any, arguments: Sequence[Any], *, axes: Sequence[Any] = (), sizes: Sequence[int] = ()) -> list[Any]:
    """The results of a jaxpr of integers. An argument is an array, an `np.ndarray` in place of a reference that is only
    read, or None for what must not be used. `axes` answers `program_id`, `sizes` `num_programs`.

    Raises NotInteger.
    """
    opened = compat.open_jaxpr(jaxpr)
    known: dict[Any, Any] = dict(zip(opened.constvars, map(np.asarray, compat.constants(jaxpr)), strict=False))
    known.update(zip(opened.invars, arguments, strict=True))
    for equation in opened.eqns:
        results = _results(equation, known, axes, sizes)
        known.update(zip(equation.outvars, results, strict=True))
    return [_read(each, known) for each in opened.outvars]


def evaluate_known(
    jaxpr: Any, known: dict[Any, Any], *, axes: Sequence[Any] = (), sizes: Sequence[int] = ()
) -> dict[Any, Any]:
    """Every value of an open jaxpr that this arithmetic can tell; `known` is extended and given back."""
    for equation in compat.open_jaxpr(jaxpr).eqns:
        try:
            results = _results(equation, known, axes, sizes)
        except NotInteger:
            continue
        known.update(zip(equation.outvars, results, strict=True))
    return known


def _read(atom: Any, known: Mapping[Any, Any]) -> Any:
    if isinstance(atom, compat.Literal):
        return np.asarray(atom.val)
    value = known.get(atom)
    if value is None:
        raise NotInteger("a value that is not known")
    return value


def _results(equation: Any, known: Mapping[Any, Any], axes: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
    name = equation.primitive.name
    if name == "program_id" and equation.params["axis"] < len(axes):
        return [axes[equation.params["axis"]]]
    if name == "num_programs" and equation.params["axis"] < len(sizes):
        return [np.int32(sizes[equation.params["axis"]])]
    if name in CALLS:
        inner = next((each for _, _, each in inner_jaxprs(equation.params)), None)
        if inner is None:
            raise NotInteger(name)
        return evaluate(inner, [_read(each, known) for each in equation.invars], axes=axes, sizes=sizes)
    if name == "get":
        return [_element(equation, known)]
    if name == "convert_element_type":
        return [np.asarray(_read(equation.invars[0], known)).astype(equation.params["new_dtype"])]
    operation = _OPERATIONS.get(name)
    if operation is None or any(getattr(each.aval, "shape", ()) != () for each in equation.invars):
        raise NotInteger(name)
    with np.errstate(over="ignore", divide="ignore"):
        return [operation(*[_read(each, known) for each in equation.invars])]


def _element(equation: Any, known: Mapping[Any, Any]) -> Any:
    """One element of a reference for each point: `table[i]` with every dimension indexed by an integer."""
    table = np.asarray(_read(equation.invars[0], known))
    indices = [np.asarray(_read(each, known)) for each in equation.invars[1:]]
    if getattr(equation.outvars[0].aval, "shape", ()) != () or len(indices) != table.ndim:
        raise NotInteger("get")
    return table[tuple(np.clip(index, 0, extent - 1) for index, extent in zip(indices, table.shape, strict=True))]
