"""What a session times: sides, the operands that they are given, and who looks at the results. No JAX here.

The same runner drives programs on a device, jitted programs on a CPU and programs of a simulated world.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from kernel_audit.records import OutputCheck, TimedSide


class Side(Protocol):
    """A program that is compiled already. A call runs it to its complete, synchronised output and returns that."""

    @property
    def record(self) -> TimedSide: ...

    def __call__(self, operands: Any) -> Any: ...


class Operands(Protocol):
    """Where operands come from. Both are made outside the clock and lie on the device when they are returned."""

    @property
    def sets(self) -> int:
        """How many sets are rotated: together larger than the caches, where the machine allows it."""
        ...

    def rotated(self, index: int) -> Any:
        """Set `index`, from 0 to `sets` - 1: the same arrays each time."""
        ...

    def fresh(self, index: int) -> Any:
        """New values, never shown to a program before; `index` is below 0 and used once."""
        ...


class Judge(Protocol):
    """Looks at results of timed calls, after the clock was read and outside the boundary."""

    def take(self, side: Side, index: int, operands: Any, output: Any) -> None:
        """One result that was chosen beforehand; `index` is that of its operands."""
        ...

    def conclude(self, timed: dict[str, int]) -> list[OutputCheck]:
        """What was found, when the process has timed all it will. `timed` counts calls by role."""
        ...


class Guard(Protocol):
    """Something that makes samples worthless. Asked after each pair: one of VOID_REASONS, or "" for a sound pair.

    `backwards` says how many earlier pairs it concerns too, for a guard that sees a window only.
    """

    def start(self) -> None: ...

    def look(self) -> tuple[str, int]: ...


@dataclass
class Sides:
    """The programs of a process. `twin` is the baseline loaded a second time; `doubled` runs it twice in one call."""

    candidate: Side
    baseline: Side
    twin: Side
    doubled: Side
    compile_s: dict[str, float] = field(default_factory=dict)
    placement_s: float = 0.0
    empty: Callable[[], Any] | None = None

    def pairs(self) -> dict[str, tuple[Side, Side]]:
        """(left, right) of each kind of pair, by the name of its column in the record."""
        return {
            "comparison": (self.candidate, self.baseline),
            "control": (self.twin, self.baseline),
            "direction": (self.doubled, self.baseline),
        }


class Doubled:
    """A side that takes twice its time: what a session must call slower, or sides are exchanged in it."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self.record = TimedSide(
            role="doubled",
            name=f"{side.record.name}, twice",
            program=side.record.program,
            exported=side.record.exported,
        )

    def __call__(self, operands: Any) -> Any:
        self._side(operands)
        return self._side(operands)
