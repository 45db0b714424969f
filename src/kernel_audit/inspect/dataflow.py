"""The body of a kernel as one flow of values: calls, branches and scopes written out, every value with its producer.

What a loop carries and what a branch gives are values without a producer: nothing is known of them. A reference keeps
its number wherever it is passed on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from kernel_audit.inspect.integers import CALLS
from kernel_audit.program import compat
from kernel_audit.program.rewrite import inner_jaxprs
from kernel_audit.program.stores import passed_on

_INLINED = CALLS | {"custom_vjp_call_jaxpr", "custom_lin", "remat2"}
_OWN = frozenset({"scatter", "reduce"})


@dataclass(frozen=True)
class Step:
    """One equation. `operands` and `results` are numbers of values. `certain`: every program comes here."""

    equation: Any
    operands: tuple[int, ...]
    results: tuple[int, ...]
    certain: bool

    @property
    def name(self) -> str:
        return self.equation.primitive.name


@dataclass
class Flow:
    """The steps of a body in order, and of each value its producer and, for a constant, what it is."""

    steps: list[Step] = field(default_factory=list)
    producers: dict[int, Step] = field(default_factory=dict)
    constants: dict[int, Any] = field(default_factory=dict)
    avals: dict[int, Any] = field(default_factory=dict)
    invars: list[int] = field(default_factory=list)
    results: list[int] = field(default_factory=list)


def flow_of(jaxpr: Any) -> Flow:
    """The flow of a jaxpr; `invars` and `results` are its own."""
    flow = Flow()
    builder = _Builder(flow)
    opened = compat.open_jaxpr(jaxpr)
    numbers = {each: builder.number(each.aval) for each in opened.invars}
    flow.invars = list(numbers.values())
    flow.results = builder.walk(jaxpr, numbers, certain=True)
    return flow


class _Builder:
    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.numbers = count()

    def number(self, aval: Any) -> int:
        made = next(self.numbers)
        self.flow.avals[made] = aval
        return made

    def walk(self, jaxpr: Any, numbers: dict[Any, int], *, certain: bool) -> list[int]:
        opened = compat.open_jaxpr(jaxpr)
        for variable, value in zip(opened.constvars, compat.constants(jaxpr), strict=False):
            if variable not in numbers:
                numbers[variable] = self.number(variable.aval)
                self.flow.constants[numbers[variable]] = value
        for equation in opened.eqns:
            self._equation(equation, numbers, certain)
        return [self._of(each, numbers) for each in opened.outvars]

    def _of(self, atom: Any, numbers: dict[Any, int]) -> int:
        if isinstance(atom, compat.Literal):
            made = self.number(atom.aval)
            self.flow.constants[made] = atom.val
            return made
        if atom not in numbers:
            numbers[atom] = self.number(atom.aval)
        return numbers[atom]

    def _equation(self, equation: Any, numbers: dict[Any, int], certain: bool) -> None:
        name = equation.primitive.name
        operands = tuple(self._of(each, numbers) for each in equation.invars)
        if name in _INLINED or name == "run_scoped":
            results = self._inline(equation, operands, certain)
            if results is not None:
                numbers.update(zip(equation.outvars, results, strict=True))
                return
        results = [self.number(each.aval) for each in equation.outvars]
        numbers.update(zip(equation.outvars, results, strict=True))
        step = Step(equation, operands, tuple(results), certain)
        self.flow.steps.append(step)
        self.flow.producers.update(dict.fromkeys(results, step))
        if not name.startswith(tuple(_OWN)):
            for given, jaxpr in self._inside(equation, operands):
                self.walk(jaxpr, given, certain=False)

    def _inline(self, equation: Any, operands: Sequence[int], certain: bool) -> list[int] | None:
        inner = next((each for _, _, each in inner_jaxprs(equation.params)), None)
        if inner is None:
            return None
        opened = compat.open_jaxpr(inner)
        scoped = equation.primitive.name == "run_scoped"
        inside = opened.constvars if scoped else opened.invars
        if len(inside) != len(operands):
            return None
        given = dict(zip(inside, operands, strict=True))
        results = self.walk(inner, given, certain=certain)
        return results if len(results) == len(equation.outvars) else None

    def _inside(self, equation: Any, operands: Sequence[int]) -> Iterator[tuple[dict[Any, int], Any]]:
        """The inner jaxprs of a branch or loop. Of a loop references go in by number, and nothing else."""
        numbers = dict(zip(map(id, equation.invars), operands, strict=True))
        branch = equation.primitive.name == "cond"
        for outer, inner, jaxpr in passed_on(equation):
            pairs = zip(outer, inner, strict=False)
            yield {b: numbers[id(a)] for a, b in pairs if branch or hasattr(b.aval, "inner_aval")}, jaxpr
