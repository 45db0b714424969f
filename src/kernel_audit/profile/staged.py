"""The step as one executable a region, run one after another: clean labels, without what fusion and overlap save.

Inside a shard_map each device has values of its own. Between two executables those lie stacked: one more leading
dimension, split over all devices, so that nothing moves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
from jax.sharding import PartitionSpec

from kernel_audit.profile.rewritten import (
    COLLECTIVES,
    INLINED,
    SHARD_MAP,
    bound,
    constants_of,
    inner,
    over_devices,
    scope_of,
    traced,
)
from kernel_audit.program import compat
from kernel_audit.records.profile import COMMUNICATION, LOCAL

MOST_PARTS = 24


class NotCut(Exception):
    """The step cannot be cut at its regions; the text says why."""


class _Slot:
    """The place of one value between executables."""


@dataclass
class _Action:
    """One equation: reads and writes values by their slots; `body` is the shard_map that it is in."""

    equation: Any
    region: str
    body: int | None
    reads: list[Any]  # slots, or literals
    writes: list[_Slot]


@dataclass
class Part:
    """A run of equations of one region, as a jitted function from the values that it needs to those that others need."""

    name: str
    region: str
    call: Callable[..., Any]
    takes: list[Any] = field(default_factory=list)
    gives: list[Any] = field(default_factory=list)


class Cut:
    """A step cut at its regions. `parts` run in order. Raises NotCut."""

    def __init__(self, function: Callable[..., Any], specs: Sequence[Any]) -> None:
        jaxpr, self._tree = traced(function, specs)
        self._actions: list[_Action] = []
        self._bodies: list[Any] = []
        self._constants: dict[_Slot, Any] = {}
        self._enters: dict[tuple[int, _Slot], Any] = {}  # (body, slot) -> spec of a value from outside
        self._exits: dict[_Slot, list[tuple[_Slot, Any]]] = {}  # inside -> (outside, spec)
        opened = compat.open_jaxpr(jaxpr)
        self._operands = [_Slot() for _ in opened.invars]
        results = self._walk(opened, compat.constants(jaxpr), self._operands, None, "")
        self._results = results
        _label(self._actions)
        self.parts = self._parts()

    def run(self, operands: Sequence[Any], each: Callable[[Part, Callable[[], Any]], Any]) -> Any:
        """The results, as the step gives them. `each(part, call)` runs every part and returns what `call()` returned."""
        known: dict[Any, Any] = {**self._constants, **dict(zip(self._operands, operands, strict=True))}
        for part in self.parts:
            given = [known[key] for key in part.takes]
            found = each(part, lambda part=part, given=given: part.call(*given))
            known.update(zip(part.gives, found, strict=True))
        leaves = [each if not isinstance(each, _Slot) else known[each] for each in self._results]
        return jax.tree.unflatten(self._tree, leaves)

    # ------------------------------------------------------------------ reading the step

    def _walk(self, jaxpr: Any, constants: Sequence[Any], given: list[Any], body: int | None, region: str) -> list[Any]:
        known: dict[Any, Any] = dict(zip(jaxpr.invars, given, strict=True))
        for variable, constant in zip(jaxpr.constvars, constants, strict=True):
            known[variable] = _Slot()
            self._constants[known[variable]] = constant

        def read(each: Any) -> Any:
            return each.val if isinstance(each, compat.Literal) else known[each]

        for equation in jaxpr.eqns:
            values = [read(each) for each in equation.invars]
            here = scope_of(equation) or region
            name = equation.primitive.name
            if name == SHARD_MAP:
                found = self._shard_map(equation, values, here)
            elif name in INLINED:
                found = self._walk(inner(equation), constants_of(equation), values, body, here)
            else:
                found = [_Slot() for _ in equation.outvars]
                if name in COLLECTIVES and not here:
                    here = COMMUNICATION
                self._actions.append(_Action(equation, here, body, values, found))
            known.update(zip(equation.outvars, found, strict=True))
        return [read(each) for each in jaxpr.outvars]

    def _shard_map(self, equation: Any, values: list[Any], region: str) -> list[_Slot]:
        body = len(self._bodies)
        self._bodies.append(equation)
        for value, spec in zip(values, equation.params["in_specs"], strict=True):
            if not isinstance(value, _Slot):
                raise NotCut("a shard_map of a constant")
            self._enters[body, value] = spec
        inside = self._walk(inner(equation), constants_of(equation), values, body, region)
        outside = []
        for value, spec in zip(inside, equation.params["out_specs"], strict=True):
            if not isinstance(value, _Slot) or (body, value) in self._enters:
                raise NotCut("a shard_map that passes an operand on")
            out = _Slot()
            self._exits.setdefault(value, []).append((out, spec))
            outside.append(out)
        return outside

    # ------------------------------------------------------------------ making the parts

    def _parts(self) -> list[Part]:
        runs = [list(group) for _, group in itertools.groupby(self._actions, key=lambda each: (each.region, each.body))]
        if len(runs) > MOST_PARTS:
            raise NotCut(f"{len(runs)} runs of equations, more than {MOST_PARTS}")
        wanted = {each for each in self._results if isinstance(each, _Slot)}
        return [
            self._part(
                index,
                run,
                {key for later in runs[index + 1 :] for one in later for key in one.reads if isinstance(key, _Slot)}
                | wanted,
            )
            for index, run in enumerate(runs)
        ]

    def _part(self, index: int, run: list[_Action], later: set[_Slot]) -> Part:
        written = dict.fromkeys(slot for action in run for slot in action.writes)
        takes = list(
            dict.fromkeys(
                key for action in run for key in action.reads if isinstance(key, _Slot) and key not in written
            )
        )
        body = run[0].body
        region = run[0].region
        if body is None:
            gives: list[Any] = [key for key in written if key in later]
            function = _function(run, takes, gives)
            specs = None
        else:
            kept = [key for key in written if key in later]
            exits = [(key, *exit_) for key in written for exit_ in self._exits.get(key, [])]
            function, specs = self._on_devices(run, body, takes, kept, exits)
            gives = [*kept, *[out for _, out, _ in exits]]
        function.__name__ = f"region_{region.replace('-', '_')}_{index}"
        if specs is not None:
            mapped = over_devices(self._bodies[body or 0], function, *specs)
            mapped.__name__ = function.__name__
            function = mapped
        return Part(f"{index}-{region}", region, jax.jit(function), takes, gives)

    def _on_devices(
        self,
        run: list[_Action],
        body: int,
        takes: list[_Slot],
        kept: list[_Slot],
        exits: list[tuple[_Slot, _Slot, Any]],
    ) -> tuple[Callable[..., Any], tuple[Any, Any]]:
        """A body of the shard_map: values of a device's own come and go stacked."""
        axes = PartitionSpec(tuple(self._bodies[body].params["mesh"].axis_names))
        entering = [PartitionSpec() if key in self._constants else self._enters.get((body, key)) for key in takes]
        inner_function = _function(run, takes, [*kept, *[key for key, _, _ in exits]])

        def function(*given: Any) -> Any:
            values = [each if spec is not None else each[0] for each, spec in zip(given, entering, strict=True)]
            found = inner_function(*values)
            return (*[each[None] for each in found[: len(kept)]], *found[len(kept) :])

        in_specs = tuple(axes if spec is None else spec for spec in entering)
        return function, (in_specs, (*[axes for _ in kept], *[spec for _, _, spec in exits]))


def _function(run: list[_Action], takes: list[_Slot], gives: list[_Slot]) -> Callable[..., Any]:
    def function(*given: Any) -> Any:
        known = dict(zip(takes, given, strict=True))
        for action in run:
            values = [known[key] if isinstance(key, _Slot) else key for key in action.reads]
            known.update(zip(action.writes, bound(action.equation, values), strict=True))
        return tuple(known[key] for key in gives)

    return function


def _label(actions: list[_Action]) -> None:
    """Equations outside every region belong to the one before; at the very beginning, to the one after."""
    for previous, action in itertools.pairwise(actions):
        action.region = action.region or previous.region
    first = next((each.region for each in actions if each.region), LOCAL)
    for action in actions:
        action.region = action.region or first
