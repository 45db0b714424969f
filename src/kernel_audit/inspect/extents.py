"""How far a program has filled its buffers, and where it adds to the same place again: levels of loops and branches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kernel_audit.inspect.walk import loop_length
from kernel_audit.program import compat

Varies = dict[Any, frozenset[int]]  # variable -> levels with which it changes; 0 is the program
PROGRAM = 0


@dataclass
class _Level:
    """The program, a loop or a branch of it. `filled`: elements that were stored on this level, not added to."""

    loop: bool
    filled: dict[Any, int] = field(default_factory=dict)


def extend(varies: Varies, equation: Any) -> None:
    """Results change with what their operands change with."""
    found = frozenset({PROGRAM}) if equation.primitive.name == "program_id" else frozenset()
    for each in equation.invars:
        if not isinstance(each, compat.Literal):
            found |= varies.get(each, frozenset())
    if found:
        varies.update(dict.fromkeys(equation.outvars, found))


class Extents:
    """The levels on which the text stands now. Where a size is not known, a buffer counts as filled."""

    def __init__(self) -> None:
        self.levels = [_Level(loop=False)]
        self.sizes: dict[Any, int] = {}

    def fill(self, label: Any, buffer: Any, value: Any) -> None:
        """A store of `value` (its aval) that does not rest on what was there."""
        self.sizes[label] = math.prod(buffer.shape)
        filled = self.levels[-1].filled
        filled[label] = filled.get(label, 0) + math.prod(getattr(value, "shape", ()))

    def filled(self, label: Any, since: int = 0) -> bool:
        """Whether the whole buffer was stored, on the levels from `since` on."""
        size = self.sizes.get(label)
        return size is not None and any(level.filled.get(label, 0) >= size for level in self.levels[since:])

    def again(self, label: Any, index: frozenset[int]) -> tuple[bool, bool]:
        """Whether a loop, and whether the next program, adds to the same place; `index`: what the place changes with."""
        over = [
            level.loop and depth not in index and not self.filled(label, depth)
            for depth, level in enumerate(self.levels)
        ]
        return any(over), PROGRAM not in index and not self.filled(label)

    @contextmanager
    def within(self, equation: Any, varies: Varies, inner: Sequence[Any]) -> Iterator[None]:
        """A loop or a branch. What a loop carries changes with it. What it fills is filled for what comes after it."""
        loop = equation.primitive.name != "cond"
        depth = len(self.levels)
        if loop:
            for each in inner[_constants(equation) :]:
                varies[each] = varies.get(each, frozenset()) | {depth}
        self.levels.append(_Level(loop))
        yield
        level, length = self.levels.pop(), loop_length(equation)
        for label, count in level.filled.items() if loop else ():
            times = self.sizes[label] if length is None else length
            self.levels[-1].filled[label] = self.levels[-1].filled.get(label, 0) + count * times


def _constants(equation: Any) -> int:
    return equation.params["body_nconsts"] if equation.primitive.name == "while" else compat.scan_counts(equation)[0]
