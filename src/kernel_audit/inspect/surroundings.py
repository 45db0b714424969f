"""The program around its kernels as one graph: what is copied next to a kernel, and values known before it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from kernel_audit.inspect.equation import array_text, bytes_of
from kernel_audit.inspect.integers import CALLS
from kernel_audit.inspect.known_values import calculated
from kernel_audit.program import compat
from kernel_audit.program.rewrite import inner_jaxprs
from kernel_audit.records import CopyAround

_INLINED = CALLS | {"custom_vjp_call_jaxpr", "custom_lin", "remat2", "name"}
_MOVES = {
    "pad": "pad",
    "slice": "crop",
    "dynamic_slice": "crop",
    "transpose": "transpose",
    "concatenate": "concatenate",
    "convert_element_type": "cast",
    "rev": "relayout",
    "copy": "relayout",
    "reshape": "",
    "broadcast_in_dim": "",
    "squeeze": "",
    "expand_dims": "",
}
Part = tuple[tuple[int, ...], tuple[int, ...]]  # first elements, and the ends, along each dimension


@dataclass
class Step:
    """One equation with its operands and results as numbers of nodes."""

    equation: Any
    operands: list[int]
    results: list[int]


@dataclass
class Graph:
    """One scope (the program, or the body of a loop) with its calls written out."""

    avals: dict[int, Any] = field(default_factory=dict)
    values: dict[int, Any] = field(default_factory=dict)
    producers: dict[int, Step] = field(default_factory=dict)
    consumers: dict[int, list[Step]] = field(default_factory=dict)
    results: set[int] = field(default_factory=set)

    def known(self, node: int) -> np.ndarray | None:
        """The value of a node, calculated where all that it rests on is known; None otherwise."""
        if node in self.values:
            return self.values[node]
        step = self.producers.get(node)
        if step is None:
            return None
        operands = [self.known(each) for each in step.operands]
        parts = None if any(each is None for each in operands) else calculated(step.equation, operands)
        if parts is None:
            return None
        self.values.update(zip(step.results, parts, strict=True))
        return self.values[node]


@dataclass(frozen=True)
class Place:
    """A kernel equation in its graph."""

    graph: Graph
    step: Step


def places(jaxpr: Any, values: Mapping[int, Any] | None = None) -> dict[str, Place]:
    """Where each kernel stands, by path. `values` are those of operands of the program, by position."""
    found: dict[str, Place] = {}
    _Builder(found).scope(jaxpr, "", dict(values or {}))
    return found


class _Builder:
    def __init__(self, found: dict[str, Place]) -> None:
        self.found = found
        self.numbers = count()

    def scope(self, jaxpr: Any, path: str, values: Mapping[int, Any]) -> None:
        graph = Graph()
        opened = compat.open_jaxpr(jaxpr)
        nodes = {each: self._node(graph, each.aval) for each in opened.invars}
        for position, variable in enumerate(opened.invars):
            if position in values:
                graph.values[nodes[variable]] = np.asarray(values[position])
        graph.results |= set(self._inside(jaxpr, graph, path, nodes))

    def _node(self, graph: Graph, aval: Any) -> int:
        number = next(self.numbers)
        graph.avals[number] = aval
        return number

    def _inside(self, jaxpr: Any, graph: Graph, path: str, nodes: dict[Any, int]) -> list[int]:
        opened = compat.open_jaxpr(jaxpr)
        for variable, value in zip(opened.constvars, compat.constants(jaxpr), strict=False):
            nodes[variable] = self._node(graph, variable.aval)
            if hasattr(value, "__array__") and not isinstance(value, compat.Tracer):
                graph.values[nodes[variable]] = value
        for position, equation in enumerate(opened.eqns):
            self._equation(equation, position, graph, path, nodes)
        return [self._of(each, graph, nodes) for each in opened.outvars]

    def _of(self, atom: Any, graph: Graph, nodes: dict[Any, int]) -> int:
        if isinstance(atom, compat.Literal):
            number = self._node(graph, atom.aval)
            graph.values[number] = np.asarray(atom.val, getattr(atom.aval, "dtype", None))
            return number
        if atom not in nodes:
            nodes[atom] = self._node(graph, atom.aval)
        return nodes[atom]

    def _equation(self, equation: Any, position: int, graph: Graph, path: str, nodes: dict[Any, int]) -> None:
        name = equation.primitive.name
        operands = [self._of(each, graph, nodes) for each in equation.invars]
        inner = list(inner_jaxprs(equation.params))
        label = equation.params.get("name")
        here = f"{path}{name}:{label}/" if isinstance(label, str) else f"{path}{name}/"
        if name in _INLINED and name not in compat.KERNEL_PRIMITIVES and inner:
            opened = compat.open_jaxpr(inner[0][2])
            if len(opened.invars) == len(operands):
                results = self._inside(inner[0][2], graph, here, dict(zip(opened.invars, operands, strict=True)))
                nodes.update(zip(equation.outvars, results, strict=True))
                return
        results = [self._node(graph, each.aval) for each in equation.outvars]
        nodes.update(zip(equation.outvars, results, strict=True))
        step = Step(equation, operands, results)
        graph.producers.update(dict.fromkeys(results, step))
        for each in operands:
            graph.consumers.setdefault(each, []).append(step)
        if name in compat.KERNEL_PRIMITIVES:
            self.found[f"{path}{name}#{position}"] = Place(graph, step)
            return
        for _, _, jaxpr in inner:
            self.scope(jaxpr, here, {})


def copies_around(place: Place, leading: int) -> list[CopyAround]:
    """Moves of data next to a kernel. `leading` operands of the equation (grid sizes, prefetched values) are no arrays."""
    found: list[CopyAround] = []
    for position, node in enumerate(place.step.operands[leading:]):
        found += _before(place.graph, node, position)
    for position, node in enumerate(place.step.results):
        found += _after(place.graph, node, position)
    return found


def _before(graph: Graph, node: int, position: int) -> Iterator[CopyAround]:
    while (step := graph.producers.get(node)) is not None and step.equation.primitive.name in _MOVES:
        yield from _moved(graph, step, step.operands[0], node, "operand", position)
        if len(step.operands) > 1 and step.equation.primitive.name == "concatenate":
            return
        node = step.operands[0]


def _after(graph: Graph, node: int, position: int) -> Iterator[CopyAround]:
    for step in graph.consumers.get(node, []):
        if step.equation.primitive.name in _MOVES and step.operands[0] == node:
            yield from _moved(graph, step, node, step.results[0], "result", position)
            yield from _after(graph, step.results[0], position)


def _moved(graph: Graph, step: Step, source: int, target: int, side: str, position: int) -> Iterator[CopyAround]:
    before, after = graph.avals[source], graph.avals[target]
    kind = _kind(step.equation.primitive.name, before, after)
    if kind:
        size = sum(bytes_of(int(np.prod(each.shape, dtype=np.int64)), each.dtype) for each in (before, after))
        yield CopyAround(
            kind=kind,
            side=side,
            position=position,
            from_array=array_text(before.shape, before.dtype),
            to_array=array_text(after.shape, after.dtype),
            bytes=size,
        )


def _kind(name: str, before: Any, after: Any) -> str:
    """What kind of a copy it is; empty where nothing has to move."""
    stated = _MOVES[name]
    if stated in ("pad", "crop", "cast") and (before.shape, before.dtype) == (after.shape, after.dtype):
        return ""
    if stated:
        return stated
    if np.prod(before.shape, dtype=np.int64) != np.prod(after.shape, dtype=np.int64):
        return "broadcast"
    # The last dimension lies along the lanes: where its size changes, elements change their places.
    last = [each.shape[-1] if each.shape else 1 for each in (before, after)]
    return "relayout" if last[0] != last[1] else ""


def logical_shape(place: Place, position: int) -> tuple[int, ...]:
    """The shape of a result that is left after the crops that follow it."""
    node = place.step.results[position]
    while True:
        readers = place.graph.consumers.get(node, [])
        if len(readers) != 1 or node in place.graph.results or _MOVES.get(readers[0].equation.primitive.name) != "crop":
            return tuple(int(each) for each in place.graph.avals[node].shape)
        node = readers[0].results[0]


def parts_read(place: Place, position: int) -> list[Part | None] | None:
    """The parts of a result that the program reads, None for all of it, and in the list for one that is not known."""
    return _parts(place.graph, place.step.results[position])


def _parts(graph: Graph, node: int) -> list[Part | None] | None:
    if node in graph.results:
        return None
    found: list[Part | None] = []
    for step in graph.consumers.get(node, []):
        name = step.equation.primitive.name
        if name == "slice":
            found += _sliced(graph, step)
        elif _MOVES.get(name) == "crop" or (name in _MOVES and _is_cropped(graph, step.results[0])):
            found.append(None)
        else:
            return None
    return found


def _sliced(graph: Graph, step: Step) -> list[Part | None]:
    """What is read of a slice, where it lies in the array that was cut."""
    starts, ends = (tuple(step.equation.params[each]) for each in ("start_indices", "limit_indices"))
    inner = _parts(graph, step.results[0]) if not step.equation.params["strides"] else None
    if inner is None:
        return [(starts, ends)]
    return [None if part is None else (_moved_by(starts, part[0]), _moved_by(starts, part[1])) for part in inner]


def _moved_by(starts: Sequence[int], place: Sequence[int]) -> tuple[int, ...]:
    return tuple(start + each for start, each in zip(starts, place, strict=True))


def _is_cropped(graph: Graph, node: int) -> bool:
    """Whether only crops read a moved array, directly or after more moves."""
    steps = graph.consumers.get(node, [])
    names = [step.equation.primitive.name for step in steps]
    if node in graph.results or not steps:
        return False
    return all(
        _MOVES.get(name) == "crop" or (name in _MOVES and _is_cropped(graph, step.results[0]))
        for name, step in zip(names, steps, strict=True)
    )


def dropped_results(place: Place) -> frozenset[int]:
    """Results of a kernel that nothing in the program reads: some kernels keep scratch there."""
    graph = place.graph
    nodes = enumerate(place.step.results)
    return frozenset(
        position for position, node in nodes if node not in graph.results and not graph.consumers.get(node)
    )


def known_operands(place: Place, wanted: Sequence[int]) -> list[np.ndarray | None]:
    """The values of operands of a kernel equation, None for each that is not known before the program runs."""
    found = [place.graph.known(place.step.operands[each]) for each in wanted]
    return [None if each is None else np.asarray(each) for each in found]
