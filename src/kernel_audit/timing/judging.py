"""Results of timed calls, held back and judged when the clock is no longer read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernel_audit.records import OutputCheck
from kernel_audit.timing.side import Side
from kernel_audit.timing.task import Arrays

HELD_BYTES = 256 << 20


class HeldResults:
    """Judges chosen results of timed calls against expected values of the very operands of the call.

    `again(index)` gives the operands once more, `expected(operands)` the expected results, and `agree(actual,
    expected)` is "" or says what differs. Results are held as the program gave them and judged at the end, or between two pairs
    where more than `held_bytes` are held: never inside the boundary.
    """

    def __init__(
        self,
        again: Callable[[int], Arrays],
        expected: Callable[[Arrays], Arrays],
        agree: Callable[[Arrays, Arrays], str],
        how: str,
        *,
        held_bytes: int = HELD_BYTES,
    ) -> None:
        self._again, self._expected, self._agree, self._how = again, expected, agree, how
        self._limit = held_bytes
        self._held: list[tuple[str, int, Any]] = []
        self._held_bytes = 0
        self._counts: dict[str, dict[str, int]] = {}
        self._notes: dict[str, str] = {}
        self._known: dict[int, Arrays] = {}  # of rotated operands, which come again

    def take(self, side: Side, index: int, operands: Any, output: Any) -> None:
        """Holds one result."""
        self._held.append((side.record.role, index, output))
        self._held_bytes += sum(each.nbytes for each in output)
        if self._held_bytes > self._limit:
            self._judge_held()

    def conclude(self, timed: dict[str, int]) -> list[OutputCheck]:
        """Judges what is held; one check a role that was timed, roles without a checked call included."""
        self._judge_held()
        return [
            OutputCheck(
                role=role,
                how=self._how,
                timed=timed[role],
                note=self._notes.get(role, ""),
                **self._counts.get(role, {"checked": 0, "fresh": 0, "differing": 0}),
            )
            for role in sorted(timed)
        ]

    def _judge_held(self) -> None:
        for role, index, output in self._held:
            counts = self._counts.setdefault(role, {"checked": 0, "fresh": 0, "differing": 0})
            said = self._agree([np.asarray(each) for each in output], self._wanted(index))
            counts["checked"] += 1
            counts["fresh"] += index < 0
            if said:
                counts["differing"] += 1
                self._notes.setdefault(role, f"operands {index}: {said}")
        self._held.clear()
        self._held_bytes = 0

    def _wanted(self, index: int) -> Arrays:
        if index in self._known:
            return self._known[index]
        values = self._expected(self._again(index))
        if index >= 0:
            self._known[index] = values
        return values


def close_to(relative: float) -> Callable[[Arrays, Arrays], str]:
    """Agreement within `relative` of the largest expected magnitude of each result, shapes and dtypes equal."""

    def agree(actual: Arrays, expected: Arrays) -> str:
        if len(actual) != len(expected):
            return f"{len(actual)} results instead of {len(expected)}"
        for place, (ours, theirs) in enumerate(zip(actual, expected, strict=True)):
            if ours.shape != theirs.shape:
                return f"result {place} has shape {ours.shape} instead of {theirs.shape}"
            off = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
            bound = relative * max(float(np.abs(theirs.astype(np.float64)).max(initial=0.0)), np.finfo(np.float32).tiny)
            if not (off <= bound).all():
                return f"result {place} is off by {float(off.max()):.3g}, allowed {bound:.3g}"
        return ""

    return agree
