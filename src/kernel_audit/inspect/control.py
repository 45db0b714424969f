"""Follows a kernel's own copies without its data: the integers that steer loops, slots and DMAs, and nothing else.

`emit_pipeline` is expanded while a kernel is traced, and many kernels copy by hand. What they do is still in the body:
loops whose counters, slots and offsets are integers. `followed` makes a Python function of that part of the jaxpr and
runs it for every program; each `dma_start` that it meets is one copy. Everything that depends on data is unknown; where
a loop or a branch that copies depends on it, `CannotTell` is raised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from kernel_audit.inspect.equation import KernelEquation, bytes_of, space_of
from kernel_audit.inspect.translate import Translator

STEPS = 65_536  # iterations and programs that are followed at most


class CannotTell(Exception):
    """The copies depend on data."""


class TooLong(CannotTell):
    """More steps than are followed."""


class Unknown:
    """A value that depends on data. Arithmetic with it is unknown; a decision by it cannot be told."""

    def _same(self, *_: Any) -> Unknown:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __or__ = __ror__ = __xor__ = __rxor__ = _same
    __neg__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = _same
    __eq__ = __ne__ = _same  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Any:
        return False if other is False else self

    __rand__ = __and__

    def __bool__(self) -> bool:
        raise CannotTell("a decision that depends on data")


UNKNOWN = Unknown()


@dataclass
class Reference:
    """A reference of the kernel. `label` is (role, position) for an operand or result; `cells` holds known scalars."""

    label: tuple[str, int] | None
    shape: tuple[int, ...]
    dtype: Any
    space: str
    cells: dict[tuple[int, ...], Any] = field(default_factory=dict)
    values: Any = None

    @property
    def in_main_memory(self) -> bool:
        return self.space in ("any", "hbm")

    def load(self, index: Sequence[Any]) -> Any:
        if any(isinstance(each, Unknown) for each in index):
            return UNKNOWN
        found = self.cells.get(tuple(index), UNKNOWN)
        if found is UNKNOWN and self.values is not None and len(index) == self.values.ndim:
            return int(self.values[tuple(index)])
        return found

    def store(self, index: Sequence[Any], value: Any) -> None:
        if isinstance(value, Unknown) or any(isinstance(each, Unknown) for each in index):
            self.forget()
        else:
            self.cells[tuple(index)] = value

    def forget(self) -> None:
        self.cells.clear()
        self.values = None


@dataclass(frozen=True)
class Copied:
    """One end of a copy that lies in main memory: whose, where (None where it depends on data), how large, and whether
    the copy writes there."""

    label: tuple[str, int]
    starts: tuple[Any, ...] | None
    sizes: tuple[int, ...]
    bytes: int
    writes: bool = False


class Runtime:
    """What the translated code calls: one run over the grid of a kernel."""

    def __init__(self, grid: Sequence[int]) -> None:
        self.sizes = tuple(grid)
        self.axes: tuple[int, ...] = ()
        self.copies: list[Copied] = []
        self.steps = 0
        self.unknown = UNKNOWN

    def step(self) -> None:
        self.steps += 1
        if self.steps > STEPS:
            raise TooLong(f"more than {STEPS} steps")

    def copy(self, source: Any, source_at: Sequence[Any], target: Any, target_at: Sequence[Any]) -> None:
        for reference, indexers, writes in ((source, source_at, False), (target, target_at, True)):
            if isinstance(reference, Reference) and reference.in_main_memory and reference.label is not None:
                self.copies.append(_window(reference, indexers, writes))
        if isinstance(target, Reference):
            target.forget()

    def branch(self, which: Any, branches: Sequence[Callable[..., Any]], acts: bool, *arguments: Any) -> Sequence[Any]:
        if isinstance(which, Unknown):
            if acts:
                raise CannotTell("a branch that copies depends on data")
            return (UNKNOWN,) * branches[0].results  # type: ignore[attr-defined]
        return branches[min(max(int(which), 0), len(branches) - 1)](self, *arguments)

    def repeat(
        self,
        condition: Any,
        body: Any,
        acts: bool,
        conditions: Sequence[Any],
        consts: Sequence[Any],
        carry: Sequence[Any],
    ) -> Sequence[Any]:
        while True:
            (going,) = condition(self, *conditions, *carry)
            if isinstance(going, Unknown):
                if acts:
                    raise CannotTell("a loop that copies depends on data")
                return (UNKNOWN,) * len(carry)
            if not going:
                return carry
            self.step()
            carry = body(self, *consts, *carry)

    def scan(
        self, body: Any, length: int, consts: Sequence[Any], carry: Sequence[Any], xs: int, ys: int
    ) -> Sequence[Any]:
        for _ in range(length):
            self.step()
            carry = body(self, *consts, *carry, *(UNKNOWN,) * xs)[: len(carry)]
        return (*carry, *(UNKNOWN,) * ys)

    def allocate(self, shape: tuple[int, ...], dtype: Any, space: str) -> Reference:
        return Reference(None, shape, dtype, space)

    @staticmethod
    def divide(a: Any, b: Any) -> Any:
        if isinstance(a, Unknown) or isinstance(b, Unknown) or b == 0:
            return UNKNOWN
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient

    @staticmethod
    def remainder(a: Any, b: Any) -> Any:
        if isinstance(a, Unknown) or isinstance(b, Unknown) or b == 0:
            return UNKNOWN
        return abs(a) % abs(b) * (-1 if a < 0 else 1)

    @staticmethod
    def extreme(pick: Callable[..., Any], *values: Any) -> Any:
        return UNKNOWN if any(isinstance(each, Unknown) for each in values) else pick(values)

    @staticmethod
    def select(which: Any, *cases: Any) -> Any:
        if isinstance(which, Unknown):
            return cases[0] if all(each is cases[0] for each in cases) else UNKNOWN
        return cases[int(which)]

    @staticmethod
    def invert(value: Any) -> Any:
        if isinstance(value, Unknown):
            return value
        return (not value) if isinstance(value, bool) else ~value

    @staticmethod
    def convert(kind: str, value: Any) -> Any:
        if isinstance(value, Unknown):
            return value
        return bool(value) if kind == "b" else float(value) if kind == "f" else int(value)


def _window(reference: Reference, indexers: Sequence[Any], writes: bool) -> Copied:
    """What a chain of indexers leaves of a reference: an index is an integer, or (start, size)."""
    starts: list[Any] = [0] * len(reference.shape)
    sizes: list[Any] = list(reference.shape)
    live = list(range(len(reference.shape)))
    for indexer in indexers:
        if indexer is None:  # a reshape or a cast of the reference: the elements stay the same
            break
        kept = []
        for dim, index in zip(live, indexer, strict=True):
            if isinstance(index, tuple):
                starts[dim], sizes[dim] = starts[dim] + index[0], index[1]
                kept.append(dim)
            else:
                starts[dim], sizes[dim] = starts[dim] + index, 1
        live = kept
    if any(isinstance(each, Unknown) for each in sizes):
        raise CannotTell("the size of a copy depends on data")
    known = None if any(isinstance(each, Unknown) for each in starts) else tuple(starts)
    assert reference.label is not None
    return Copied(reference.label, known, tuple(sizes), bytes_of(math.prod(sizes), reference.dtype), writes)


def copies_by_hand(kernel: KernelEquation) -> bool:
    """Whether the body of the kernel starts copies of its own."""
    return Translator(space_of).starts_copies(kernel.body)


def followed(
    kernel: KernelEquation, grid: Sequence[int | None], prefetched: Sequence[Any] | None = None
) -> list[Copied]:
    """Every copy between main memory and fast memory that the body starts, over all programs of `grid`, in order.

    `prefetched`: the values of prefetched operands, where they are known. Raises CannotTell.
    """
    sizes = [size for size in grid if size is not None]
    if len(sizes) < len(grid):
        raise CannotTell("a grid size that is known only at run time")
    if math.prod(sizes) > STEPS:
        raise TooLong(f"more than {STEPS} programs")
    try:
        function = Translator(space_of).function(kernel.body)
    except NotImplementedError as reason:
        raise CannotTell(str(reason)) from None
    runtime = Runtime(sizes)
    values = list(prefetched) if prefetched is not None else [None] * len(kernel.prefetched)
    arguments = [*_prefetched(kernel.prefetched, values), *_operands(kernel), *_scratch(kernel.scratch)]
    constants = [UNKNOWN] * len(kernel.body.constvars)
    for point in _points(sizes):
        runtime.step()
        runtime.axes = point
        function(runtime, *constants, *arguments)
    return runtime.copies


def _points(sizes: Sequence[int]) -> Iterable[tuple[int, ...]]:
    return product(*[range(size) for size in sizes])


def _prefetched(variables: Sequence[Any], values: Sequence[Any]) -> list[Reference]:
    return [
        Reference(None, tuple(each.aval.shape), each.aval.dtype, "smem", values=value)
        for each, value in zip(variables, values, strict=True)
    ]


def _operands(kernel: KernelEquation) -> list[Reference]:
    made = []
    for each in kernel.mappings:
        space = each.memory_space
        made.append(
            Reference((each.role, each.position), each.shape if not each.piped else each.block, each.dtype, space)
        )
    return made


def _scratch(variables: Sequence[Any]) -> list[Reference]:
    return [
        Reference(None, tuple(getattr(each.aval, "shape", ())), getattr(each.aval, "dtype", None), space_of(each.aval))
        for each in variables
    ]
