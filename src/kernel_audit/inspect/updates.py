"""How a body uses its buffers: what it reads before it ever stored there, and what it adds to, in order of the text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kernel_audit.inspect.equation import KernelEquation, space_of
from kernel_audit.inspect.extents import Extents, Varies, extend
from kernel_audit.inspect.integers import CALLS, evaluate_known
from kernel_audit.program import compat
from kernel_audit.program.rewrite import inner_jaxprs
from kernel_audit.program.stores import passed_on

Label = tuple[str, int]  # ("input" | "output" | "scratch" | "prefetched" | "allocated", position)
_READS = frozenset({"get", "masked_load"})
_STORES = frozenset({"swap", "masked_swap"})
# A value that was chosen may not be the one that was read: what goes through these is not followed.
_CHOOSE = frozenset({"select_n", "and", "or", "clamp", "sort", "gather", "scatter", "dynamic_slice"})


@dataclass(frozen=True)
class Update:
    """A store to a buffer of something calculated from what was there. `operations` lie between read and store.

    `first`: nothing was stored there before it in the text, under a condition or not; `certain`: it stands under no
    condition and the value that was read is not chosen from others. `over_loop`: a loop adds to the same place again
    and again; `over_programs`: programs do, if they have the same block. Neither where the buffer was filled meanwhile.
    """

    label: Label
    dtype: str
    operations: frozenset[str]
    first: bool
    certain: bool
    over_loop: bool
    over_programs: bool


@dataclass
class Uses:
    """What a body does with its references. `carried` are read before this program filled them."""

    touched: set[Label] = field(default_factory=set)
    read: set[Label] = field(default_factory=set)
    stored: set[Label] = field(default_factory=set)
    carried: set[Label] = field(default_factory=set)
    updates: list[Update] = field(default_factory=list)


def uses_of(kernel: KernelEquation) -> Uses:
    """The uses of operands, results, scratch, prefetched operands and of what the body allocates."""
    labels: dict[Any, Label] = {}
    for role, variables in (
        ("prefetched", kernel.prefetched),
        ("input", [each.reference for each in kernel.inputs]),
        ("output", [each.reference for each in kernel.outputs]),
        ("scratch", kernel.scratch),
    ):
        labels.update({variable: (role, position) for position, variable in enumerate(variables)})
    found = Uses()
    _Reader(found).walk(kernel.body, labels, {}, {}, conditional=False)
    return found


class _Reader:
    def __init__(self, found: Uses) -> None:
        self.found = found
        self.allocated = 0
        self.extents = Extents()

    def walk(
        self, jaxpr: Any, labels: dict[Any, Label], known: dict[Any, Any], varies: Varies, *, conditional: bool
    ) -> None:
        """Reads one jaxpr. `known` integers decide branches that depend on no program.

        `values`: what was read -> (buffer, operations since, whether the buffer had no store yet).
        """
        known = evaluate_known(jaxpr, dict(known))
        values: dict[Any, dict[Label, tuple[frozenset[str], bool]]] = {}
        for equation in compat.open_jaxpr(jaxpr).eqns:
            name = equation.primitive.name
            self._touch(equation, labels)
            extend(varies, equation)
            if name in _READS:
                self._read(equation, labels, values)
            elif name in _STORES or name == "addupdate":
                self._store(equation, labels, values, varies, conditional)
            elif name == "dma_start":
                self._copy(equation, labels)
            elif name in CALLS:
                self._call(equation, labels, known, values, varies, conditional)
            elif any(True for _ in inner_jaxprs(equation.params)):
                self._inner(equation, labels, known, varies, conditional)
            elif name not in _CHOOSE:
                self._pass_on(equation, values)

    def _touch(self, equation: Any, labels: dict[Any, Label]) -> None:
        self.found.touched |= {labels[each] for each in _variables(equation.invars) if each in labels}

    def _read(self, equation: Any, labels: dict[Any, Label], values: dict[Any, Any]) -> None:
        label = labels.get(equation.invars[0])
        if label is not None:
            self._note_read(label)
            values[equation.outvars[0]] = {label: (frozenset(), label not in self.found.stored)}

    def _note_read(self, label: Label) -> None:
        self.found.read.add(label)
        if not self.extents.filled(label):
            self.found.carried.add(label)

    def _store(
        self, equation: Any, labels: dict[Any, Label], values: dict[Any, Any], varies: Varies, conditional: bool
    ) -> None:
        label = labels.get(equation.invars[0])
        if label is None:
            return
        index = frozenset().union(*[varies.get(each, frozenset()) for each in _variables(equation.invars[2:])])
        found = []
        if equation.primitive.name == "addupdate":
            found.append((frozenset({"add"}), label not in self.found.stored))
        for value in _variables(equation.invars[1:]):
            if label in values.get(value, {}):
                found.append(values[value][label])
        dtype = str(equation.invars[0].aval.dtype)
        for done, first in found:
            over = self.extents.again(label, index)
            self._note_read(label)
            self.found.updates.append(Update(label, dtype, done, first, not conditional, *over))
        if not found:
            self.extents.fill(label, equation.invars[0].aval, equation.invars[1].aval)
        self.found.stored.add(label)

    def _copy(self, equation: Any, labels: dict[Any, Label]) -> None:
        (source, _), (target, _) = compat.dma_ends(equation)
        if source in labels:
            self._note_read(labels[source])
        if target in labels:
            self.found.stored.add(labels[target])
            self.extents.fill(labels[target], target.aval, target.aval)

    def _pass_on(self, equation: Any, values: dict[Any, Any]) -> None:
        self._merge(equation, values, frozenset({equation.primitive.name}))

    def _merge(self, equation: Any, values: dict[Any, Any], names: frozenset[str]) -> None:
        merged: dict[Label, tuple[frozenset[str], bool]] = {}
        for each in _variables(equation.invars):
            for label, (done, first) in values.get(each, {}).items():
                merged[label] = (done | names, first)
        if merged:
            values.update(dict.fromkeys(equation.outvars, merged))

    def _call(
        self,
        equation: Any,
        labels: dict[Any, Label],
        known: dict[Any, Any],
        values: dict[Any, Any],
        varies: Varies,
        conditional: bool,
    ) -> None:
        """A call: references go in by name; of values only whether the call chooses among them matters."""
        for outer, inner, jaxpr in passed_on(equation):
            given = (_renamed(outer, inner, each) for each in (labels, known, varies))
            self.walk(jaxpr, *given, conditional=conditional)
        names = {each.primitive.name for _, _, inner in inner_jaxprs(equation.params) for each in _all(inner)}
        if not names & (_CHOOSE | {"cond", "while", "scan"}):
            self._merge(equation, values, frozenset(names))

    def _inner(
        self, equation: Any, labels: dict[Any, Label], known: dict[Any, Any], varies: Varies, conditional: bool
    ) -> None:
        name = equation.primitive.name
        taken = _taken(equation, known)
        loop, decided = name in ("while", "scan"), name == "cond" and taken is None
        for branch, (outer, inner, jaxpr) in enumerate(passed_on(equation)):
            if taken not in (None, branch):
                continue
            named = _renamed(outer, inner, labels)
            if name == "run_scoped":
                for variable in compat.open_jaxpr(jaxpr).invars:
                    if space_of(variable.aval) == "vmem":
                        named[variable] = ("allocated", self.allocated)
                        self.allocated += 1
            # What a loop carries changes with its trips.
            inside = {} if loop else _renamed(outer, inner, known)
            changing = _renamed(outer, inner, varies)
            with self.extents.within(equation, changing, inner) if loop or decided else nullcontext():
                self.walk(jaxpr, named, inside, changing, conditional=conditional or decided)


def _taken(equation: Any, known: dict[Any, Any]) -> int | None:
    """The branch of a `cond` whose index is known, such as that a pipeline has any steps."""
    if equation.primitive.name != "cond":
        return None
    which = equation.invars[0]
    value = which.val if isinstance(which, compat.Literal) else known.get(which)
    return None if value is None or np.ndim(value) else int(value)


def _all(jaxpr: Any) -> Iterator[Any]:
    for equation in compat.open_jaxpr(jaxpr).eqns:
        yield equation
        for _, _, inner in inner_jaxprs(equation.params):
            yield from _all(inner)


def _variables(atoms: Any) -> list[Any]:
    return [each for each in atoms if not isinstance(each, compat.Literal)]


def _renamed(outer: Any, inner: Any, labels: dict[Any, Any]) -> dict[Any, Any]:
    pairs = zip(outer, inner, strict=False)
    return {b: labels[a] for a, b in pairs if not isinstance(a, compat.Literal) and a in labels}
