"""Index maps: the block of each grid point, on NumPy for some points, or as affine forms for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from kernel_audit.inspect.equation import Mapping
from kernel_audit.inspect.integers import CALLS, NotInteger, evaluate
from kernel_audit.program import compat
from kernel_audit.program.rewrite import inner_jaxprs


@dataclass(frozen=True)
class Affine:
    """constant + sum of coefficient x grid index; one coefficient for each axis of the grid."""

    constant: int
    coefficients: tuple[int, ...]

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(axis for axis, each in enumerate(self.coefficients) if each)

    def text(self) -> str:
        """ "2*i + 1", with the axes named i, j, k, ..."""
        parts = [axis_name(axis) if each == 1 else f"{each}*{axis_name(axis)}" for axis, each in self._terms()]
        if self.constant or not parts:
            parts.append(str(self.constant))
        return " + ".join(parts).replace("+ -", "- ")

    def _terms(self) -> list[tuple[int, int]]:
        return [(axis, each) for axis, each in enumerate(self.coefficients) if each]


def axis_name(axis: int) -> str:
    """i, j, k, l, ... and then g18, g19, ..."""
    return chr(ord("i") + axis) if axis < 18 else f"g{axis}"


def affine_indices(mapping: Mapping, rank: int) -> list[Affine | None]:
    """Each index of the map as an affine form, None where it is none."""
    axes = [Affine(0, tuple(int(axis == own) for own in range(rank))) for axis in range(rank)]
    opened = compat.open_jaxpr(mapping.index_map)
    inputs = [*axes, *[None] * (len(opened.invars) - rank)]
    try:
        results = _affine_results(mapping.index_map, inputs, rank)
    except RecursionError:
        results = [None] * len(opened.outvars)
    return _starts(mapping, results)


def _starts(mapping: Mapping, results: Sequence[Any]) -> list[Any]:
    """One index for each dimension: of a bounded slice its start."""
    if mapping.out_tree is None or len(results) == len(mapping.dims):
        return list(results)
    whole = jax.tree.unflatten(mapping.out_tree, [_Leaf(each) for each in results])
    parts = whole if isinstance(whole, tuple) else (whole,)
    return [getattr(getattr(each, "start", each), "value", getattr(each, "start", None)) for each in parts]


@dataclass(frozen=True)
class _Leaf:
    value: Any


def _affine_results(jaxpr: Any, inputs: Sequence[Affine | None], rank: int) -> list[Affine | None]:
    opened = compat.open_jaxpr(jaxpr)
    known: dict[Any, Affine | None] = dict(zip(opened.invars, inputs, strict=True))
    for variable, value in zip(opened.constvars, compat.constants(jaxpr), strict=False):
        known[variable] = affine_constant(value, rank)

    def read(atom: Any) -> Affine | None:
        return affine_constant(atom.val, rank) if isinstance(atom, compat.Literal) else known.get(atom)

    for equation in opened.eqns:
        operands = [read(each) for each in equation.invars]
        if equation.primitive.name in CALLS:
            inner = next((each for _, _, each in inner_jaxprs(equation.params)), None)
            results = _affine_results(inner, operands, rank) if inner is not None else []
        else:
            results = [affine_operation(equation, operands)]
        known.update(zip(equation.outvars, results, strict=False))
    return [read(each) for each in opened.outvars]


def affine_constant(value: Any, rank: int) -> Affine | None:
    """An integer as a form; None for an array, a truth value or a number with a fraction."""
    known = np.ndim(value) == 0 and np.asarray(value).dtype.kind in "iu"
    return Affine(int(value), (0,) * rank) if known else None


def affine_operation(equation: Any, operands: Sequence[Affine | None]) -> Affine | None:
    """The result of an operation on affine forms, None where it is not affine.

    Only of signed integers of at least 32 bits, as grid indices are: others wrap, or round.
    """
    name = equation.primitive.name
    if not operands or not all(_counts(each.aval) for each in (*equation.outvars, *equation.invars)):
        return None
    if name == "convert_element_type":
        widths = [np.dtype(each.aval.dtype).itemsize for each in (equation.invars[0], equation.outvars[0])]
        return operands[0] if widths[0] <= widths[1] else None
    if name in ("copy", "stop_gradient", "squeeze", "reshape"):
        return operands[0]
    if not operands or any(each is None for each in operands):
        return None
    a, *rest = operands
    assert a is not None
    if name == "neg":
        return _scaled(a, -1)
    if len(rest) != 1 or rest[0] is None:
        return None
    b = rest[0]
    if name == "add":
        return _sum(a, b)
    if name == "sub":
        return _sum(a, _scaled(b, -1))
    if name == "mul" and not b.axes:
        return _scaled(a, b.constant)
    if name == "mul" and not a.axes:
        return _scaled(b, a.constant)
    if not a.axes and not b.axes and name in ("div", "rem", "max", "min"):
        return Affine(int(_CONSTANT[name](a.constant, b.constant)), a.coefficients)
    return None


def _counts(aval: Any) -> bool:
    """Whether a value is one signed integer of at least 32 bits."""
    dtype = getattr(aval, "dtype", None)
    if dtype is None or getattr(aval, "shape", None) != ():
        return False
    kind = np.dtype(dtype) if not jax.dtypes.issubdtype(dtype, jax.dtypes.extended) else None
    return kind is not None and kind.kind == "i" and kind.itemsize >= 4


_CONSTANT = {
    "div": lambda a, b: (abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) if b else 0,
    "rem": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1) if b else 0,
    "max": max,
    "min": min,
}


def _scaled(a: Affine, by: int) -> Affine:
    return Affine(a.constant * by, tuple(each * by for each in a.coefficients))


def _sum(a: Affine, b: Affine) -> Affine:
    return Affine(a.constant + b.constant, tuple(x + y for x, y in zip(a.coefficients, b.coefficients, strict=True)))


def driving_axes(mapping: Mapping, rank: int) -> frozenset[int]:
    """The axes of the grid that any index of the map uses, by the data flow of the map."""
    opened = compat.open_jaxpr(mapping.index_map)
    uses: dict[Any, frozenset[int]] = {each: frozenset({axis}) for axis, each in enumerate(opened.invars[:rank])}
    for equation in opened.eqns:
        atoms = [each for each in equation.invars if not isinstance(each, compat.Literal)]
        found = frozenset().union(*[uses.get(each, frozenset()) for each in atoms])
        uses.update(dict.fromkeys(equation.outvars, found))
    results = [each for each in opened.outvars if not isinstance(each, compat.Literal)]
    return frozenset().union(*[uses.get(each, frozenset()) for each in results])


def reads_prefetched(mapping: Mapping, rank: int) -> bool:
    """Whether the map uses values that are known only when the kernel runs: prefetched references."""
    opened = compat.open_jaxpr(mapping.index_map)
    references = set(opened.invars[rank:])
    return any(each in references for eqn in opened.eqns for each in eqn.invars if not isinstance(each, compat.Literal))


def block_indices(mapping: Mapping, axes: Sequence[Any], prefetched: Sequence[Any]) -> list[Any]:
    """The index along each dimension for grid points given as arrays that broadcast. Raises NotInteger."""
    references = list(prefetched)
    missing = len(compat.open_jaxpr(mapping.index_map).invars) - len(axes) - len(references)
    references += [None] * missing
    found = _starts(mapping, evaluate(mapping.index_map, [*axes, *references]))
    if any(each is None for each in found):
        raise NotInteger("an index that is no number")
    return [np.asarray(each) for each in found]


def index_text(mapping: Mapping, rank: int) -> str:
    """The map for a reader: "(i, 2*j)"; an index of another form as what it depends on."""
    driven = "values" if reads_prefetched(mapping, rank) else "f"
    names = ",".join(axis_name(axis) for axis in sorted(driving_axes(mapping, rank)))
    parts = [each.text() if each is not None else f"{driven}({names})" for each in affine_indices(mapping, rank)]
    return f"({', '.join(parts)})"


def open_axes(grid: Sequence[int]) -> list[np.ndarray]:
    """The grid's indices as arrays that broadcast to the whole grid."""
    rank = len(grid)
    return [
        np.arange(size, dtype=np.int32).reshape([-1 if own == axis else 1 for own in range(rank)])
        for axis, size in enumerate(grid)
    ]
