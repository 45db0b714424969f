"""Operations that certainly round more than a contract allows: operands are followed back to where they come from.

A product with what was a truth value, or a matrix product of what was cast from 16 bits, rounds nothing. Where it is not
known what an operand holds, nothing is said.
"""

from __future__ import annotations

import math

import numpy as np

from kernel_audit.inspect.body import precision_of
from kernel_audit.inspect.dataflow import Flow, Step, flow_of
from kernel_audit.inspect.equation import KernelEquation
from kernel_audit.program import compat

NARROW = frozenset({"bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"})
_WIDE = frozenset({"float32", "float64"})
_LOADS = frozenset({"get", "masked_load"})
_MOVES = frozenset({
    "broadcast_in_dim", "convert_element_type", "copy", "dynamic_slice", "expand_dims", "neg", "pad", "reshape", "rev",
    "slice", "squeeze", "stop_gradient", "transpose",
})  # fmt: skip
_TRUTHS = frozenset({"eq", "ne", "lt", "le", "gt", "ge", "not", "is_finite", "sign"})
_FUNCTIONS = frozenset({"exp", "exp2", "log", "tanh", "logistic", "sqrt", "rsqrt", "pow", "erf"})
_ROUNDING = frozenset({"add", "sub", "mul", "div", "reduce_sum", "dot_general"}) | _FUNCTIONS
# What an array of arbitrary float32 numbers goes through, and stays one.
_KEEPS_DIGITS = _MOVES | _ROUNDING | {
    "abs", "concatenate", "integer_pow", "max", "min", "reduce_max", "reduce_min", "select_n", "square",
}  # fmt: skip


def roundings(kernel: KernelEquation) -> list[str]:
    """What a body does with less than float32: a text for each kind, sorted."""
    flow = flow_of(kernel.body)
    operands = _Operands(flow, _arrived(kernel, flow))
    told: set[str] = set()
    for step in flow.steps:
        if not step.results or not getattr(flow.avals[step.results[0]], "shape", ()):
            continue
        stated = precision_of(step.equation) if step.name == "dot_general" and kernel.platform == "tpu" else ""
        if stated in ("default", "high") and any(operands.has_digits(each) for each in step.operands):
            told.add(f"a matrix product of float32 at precision {stated}: its operands are rounded to bfloat16")
        result = str(flow.avals[step.results[0]].dtype)
        if step.name in _ROUNDING and result in NARROW and not operands.exact(step):
            told.add(f"{step.name} in {result}")
    return sorted(told)


def _arrived(kernel: KernelEquation, flow: Flow) -> set[int]:
    """References that hold what the caller gave: operands, and buffers that copies alone fill."""
    number = dict(zip(compat.open_jaxpr(kernel.body).invars, flow.invars, strict=True))
    found, stored = {number[each.reference] for each in kernel.inputs}, set()
    for step in flow.steps:
        if step.name == "dma_start":
            _, (target, _) = compat.dma_ends(step.equation)
            found |= {a for a, b in zip(step.operands, step.equation.invars, strict=True) if b is target}
        elif step.name in ("swap", "masked_swap", "addupdate"):
            stored.add(step.operands[0])
    return found - stored


class _Operands:
    """What is certain of values."""

    def __init__(self, flow: Flow, arrived: set[int]) -> None:
        self.flow, self.arrived = flow, arrived
        self._digits: dict[int, bool] = {}
        self._truths: dict[int, bool] = {}

    def has_digits(self, number: int) -> bool:
        """Whether a value is float32 and comes from arbitrary float32 numbers, without less on the way."""
        if number not in self._digits:
            step = self.flow.producers.get(number)
            self._digits[number] = (
                step is not None
                and str(getattr(self.flow.avals[number], "dtype", "")) in _WIDE
                and (
                    (step.name in _LOADS and step.operands[0] in self.arrived)
                    or (step.name in _KEEPS_DIGITS and any(self.has_digits(each) for each in step.operands))
                )
            )
        return self._digits[number]

    def exact(self, step: Step) -> bool:
        """Whether an operation in 16 bits or fewer rounds nothing, or may round nothing."""
        name, operands = step.name, step.operands
        if name == "mul":
            constant = any(each in self.flow.constants for each in operands)
            loaded = operands[0] != operands[1] and any(self._loaded(each) for each in operands)
            return any(self._truth(each) for each in operands) or (loaded and not constant)
        if name in ("add", "sub"):
            return all(self._truth(each) or self._chosen(each) for each in operands)
        if name == "dot_general":
            return any(self._truth(each) for each in operands)
        return name == "reduce_sum" and (self._truth(operands[0]) or self._chosen(operands[0]))

    def _truth(self, number: int) -> bool:
        """Whether every element is a truth value, zero, or a power of two that is a constant."""
        if number in self.flow.constants:
            return _is_power(self.flow.constants[number])
        if number not in self._truths:
            step, aval = self.flow.producers.get(number), self.flow.avals[number]
            self._truths[number] = str(getattr(aval, "dtype", "")) == "bool" or (
                step is not None
                and (
                    step.name in _TRUTHS
                    or (step.name in _MOVES and self._truth(step.operands[0]))
                    or (step.name == "select_n" and all(self._truth(each) for each in step.operands[1:]))
                    or (step.name in ("mul", "max", "min") and all(self._truth(each) for each in step.operands))
                    or (step.name == "sub" and self._is_one(step.operands[0]) and self._truth(step.operands[1]))
                )
            )
        return self._truths[number]

    def _is_one(self, number: int) -> bool:
        step = self.flow.producers.get(number)
        while step is not None and step.name in _MOVES and number not in self.flow.constants:
            number = step.operands[0]
            step = self.flow.producers.get(number)
        value = self.flow.constants.get(number)
        return value is not None and np.ndim(value) == 0 and float(value) == 1.0

    def _chosen(self, number: int) -> bool:
        """A product with a truth value: a sum of such may leave one of them alone."""
        step = self.flow.producers.get(number)
        if step is not None and step.name in _MOVES:
            return self._chosen(step.operands[0])
        return step is not None and step.name == "mul" and any(self._truth(each) for each in step.operands)

    def _loaded(self, number: int) -> bool:
        """Whether a value is what a reference held, which may be a mask, or comes from where nothing is known."""
        step = self.flow.producers.get(number)
        if number in self.flow.constants:
            return False
        if step is None or step.name in _LOADS:
            return True
        return step.name in _MOVES and self._loaded(step.operands[0])


def _is_power(value: object) -> bool:
    if np.ndim(value) != 0:  # type: ignore[arg-type]
        return False
    number = float(np.asarray(value, np.float64))
    return number == 0 or (math.isfinite(number) and math.frexp(abs(number))[0] == 0.5)
