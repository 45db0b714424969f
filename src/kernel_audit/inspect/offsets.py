"""Offsets that leave their 32 bits at the declared shapes: exactly, for sums of multiples of grid indices.

Only what ends as an index is an offset: of a block, of a load or store, of a copy. Signed 32-bit sums and products are
exact modulo 2^32, so that one is wrong only where it is used: as an index, or by an operation that depends on its size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from kernel_audit.inspect.dataflow import Flow, Step, flow_of
from kernel_audit.inspect.equation import KernelEquation
from kernel_audit.inspect.index_map import Affine, affine_constant, affine_operation

_MODULAR = frozenset({"add", "sub", "mul", "neg", "copy", "stop_gradient", "squeeze", "reshape"})
_BY_SIZE = frozenset({"div", "max", "min", "shift_right_arithmetic", "convert_element_type"})
_VALUES = {"get": 0, "masked_load": 0, "swap": 1, "masked_swap": 1, "addupdate": 1}  # operands after the reference


def overflows(kernel: KernelEquation, grid: Sequence[int]) -> Iterator[str]:
    """A sentence for each offset whose largest or smallest value, over the programs of the grid, does not fit its dtype.

    Grid indices are independent, so that the largest value of an affine form is reached by a program of the grid.
    """
    told: set[str] = set()
    for mapping in kernel.mappings:
        flow = flow_of(mapping.index_map)
        axes = {number: _axis(axis, len(grid)) for axis, number in enumerate(flow.invars[: len(grid)])}
        reader = _Reader(flow, axes, grid)
        texts = set().union(*[reader.wrong(each, used=True) for each in flow.results])
        told |= {f"the index map of {mapping.name} reaches {text}" for text in texts}
    flow = flow_of(kernel.body)
    reader = _Reader(flow, {}, grid)
    for step in flow.steps:
        if step.certain:
            for each in _indices(step):
                told |= {f"an offset in the body reaches {text}" for text in reader.wrong(each, used=True)}
    yield from sorted(told)


def _axis(axis: int, rank: int) -> Affine:
    return Affine(0, tuple(int(axis == own) for own in range(rank)))


def _indices(step: Step) -> Sequence[int]:
    """The operands of a step that say where it reads, writes or copies."""
    if step.name in _VALUES:
        return step.operands[1 + _VALUES[step.name] :]
    return step.operands if step.name == "dma_start" else ()


class _Reader:
    """The affine forms of a flow, and which values are certainly wrong."""

    def __init__(self, flow: Flow, forms: dict[int, Affine], grid: Sequence[int]) -> None:
        self.flow, self.grid = flow, grid
        self.forms: dict[int, Affine | None] = dict(forms)
        self._told: dict[tuple[int, bool], set[str]] = {}
        for number, value in flow.constants.items():
            self.forms[number] = affine_constant(value, len(grid))
        for step in flow.steps:
            if len(step.results) == 1:
                self.forms[step.results[0]] = self._form(step)

    def _form(self, step: Step) -> Affine | None:
        if step.name == "program_id":
            return _axis(step.equation.params["axis"], len(self.grid))
        if step.name == "num_programs":
            return Affine(self.grid[step.equation.params["axis"]], (0,) * len(self.grid))
        return affine_operation(step.equation, [self.forms.get(each) for each in step.operands])

    def wrong(self, number: int, *, used: bool) -> set[str]:
        """Sentences on a value. `used`: its size matters, and not only what it is modulo 2^32."""
        key = (number, used)
        if key not in self._told:
            self._told[key] = set()
            self._told[key] = self._wrong(number, used)
        return self._told[key]

    def _wrong(self, number: int, used: bool) -> set[str]:
        form = self.forms.get(number)
        if used and form is not None and (text := _beyond(form, self.flow.avals[number], self.grid)):
            return {text}
        step = self.flow.producers.get(number)
        if step is None:
            return set()
        if step.name == "select_n":  # a choice may be there to leave the wrong ones out
            cases = [self.wrong(each, used=used) for each in step.operands[1:]]
            return set.intersection(*cases)
        if step.name in _MODULAR:
            return set().union(*[self.wrong(each, used=False) for each in step.operands])
        if step.name in _BY_SIZE and _widens(step):
            return set().union(*[self.wrong(each, used=True) for each in step.operands])
        return set()


def _widens(step: Step) -> bool:
    """Of a cast, whether the target holds every value of the source: one that does not is meant to wrap."""
    source, target = (np.dtype(each.aval.dtype) for each in (step.equation.invars[0], step.equation.outvars[0]))
    return step.name != "convert_element_type" or (
        source.kind == target.kind == "i" and source.itemsize <= target.itemsize
    )


def _beyond(form: Affine, aval: Any, grid: Sequence[int]) -> str:
    dtype = getattr(aval, "dtype", None)
    if dtype is None or np.dtype(dtype).kind != "i" or not form.axes:
        return ""
    limits = np.iinfo(np.dtype(dtype))
    highest = form.constant + sum(max(0, each * (size - 1)) for each, size in zip(form.coefficients, grid, strict=True))
    lowest = form.constant + sum(min(0, each * (size - 1)) for each, size in zip(form.coefficients, grid, strict=True))
    if highest > limits.max:
        return f"{highest:,}, beyond the {limits.max:,} of {np.dtype(dtype).name}"
    return f"{lowest:,}, below the {limits.min:,} of {np.dtype(dtype).name}" if lowest < limits.min else ""
