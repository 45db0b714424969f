"""32-bit integers that leave their range at the declared shapes: exactly, for sums of multiples of grid indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kernel_audit.inspect.equation import KernelEquation
from kernel_audit.inspect.index_map import Affine, affine_operation
from kernel_audit.inspect.integers import CALLS
from kernel_audit.program import compat
from kernel_audit.program.rewrite import inner_jaxprs


def overflows(kernel: KernelEquation, grid: Sequence[int]) -> Iterator[str]:
    """A sentence for each integer operation of the body or of an index map whose largest value does not fit its dtype.

    Grid indices are independent, so that the largest value of an affine form is reached by a program of the grid.
    """
    told: set[str] = set()
    rank = len(grid)
    for mapping in kernel.mappings:
        opened = compat.open_jaxpr(mapping.index_map)
        axes = [_axis(axis, rank) for axis in range(rank)]
        known = dict(zip(opened.invars, axes, strict=False))
        told |= {f"the index map of {mapping.name} reaches {text}" for text in _walk(mapping.index_map, known, grid)}
    told |= {f"an offset in the body reaches {text}" for text in _walk(kernel.body, {}, grid)}
    yield from sorted(told)


def _axis(axis: int, rank: int) -> Affine:
    return Affine(0, tuple(int(axis == own) for own in range(rank)))


def _walk(jaxpr: Any, known: dict[Any, Affine], grid: Sequence[int]) -> set[str]:
    """Sentences for one jaxpr; conditions are taken to hold for some program with the largest indices or not looked at."""
    found: set[str] = set()
    rank = len(grid)

    def read(atom: Any) -> Affine | None:
        if isinstance(atom, compat.Literal):
            value = np.asarray(atom.val)
            return Affine(int(value), (0,) * rank) if value.ndim == 0 and value.dtype.kind in "iu" else None
        return known.get(atom)

    for equation in compat.open_jaxpr(jaxpr).eqns:
        name = equation.primitive.name
        if name == "program_id":
            known[equation.outvars[0]] = _axis(equation.params["axis"], rank)
            continue
        if name == "num_programs":
            known[equation.outvars[0]] = Affine(grid[equation.params["axis"]], (0,) * rank)
            continue
        operands = [read(each) for each in equation.invars]
        if name in CALLS:
            for _, _, inner in inner_jaxprs(equation.params):
                pairs = zip(compat.open_jaxpr(inner).invars, operands, strict=False)
                found |= _walk(inner, {variable: form for variable, form in pairs if form is not None}, grid)
            continue
        form = affine_operation(name, operands) if len(equation.outvars) == 1 else None
        if form is None or len(form.coefficients) != rank:
            continue
        known[equation.outvars[0]] = form
        if text := _beyond(form, equation.outvars[0].aval, grid):
            found.add(text)
    return found


def _beyond(form: Affine, aval: Any, grid: Sequence[int]) -> str:
    dtype = getattr(aval, "dtype", None)
    if dtype is None or np.dtype(dtype).kind not in "iu" or not form.axes:
        return ""
    limits = np.iinfo(np.dtype(dtype))
    highest = form.constant + sum(max(0, each * (size - 1)) for each, size in zip(form.coefficients, grid, strict=True))
    lowest = form.constant + sum(min(0, each * (size - 1)) for each, size in zip(form.coefficients, grid, strict=True))
    if highest > limits.max:
        return f"{highest:,}, beyond the {limits.max:,} of {np.dtype(dtype).name}"
    return f"{lowest:,}, below the {limits.min:,} of {np.dtype(dtype).name}" if lowest < limits.min else ""
