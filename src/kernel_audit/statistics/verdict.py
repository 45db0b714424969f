"""From intervals to a verdict: small pure rules, each of which gives a reason code.

In a session whose control, the baseline against itself, is clear of 1, nothing can be told. In any other *faster* and *slower*
need an interval clear of 1, *no difference shown* the whole interval within the margin. Everything else is *cannot tell*.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_audit.records.timing import CANNOT_TELL, FASTER, NO_DIFFERENCE, SLOWER
from kernel_audit.statistics.interval import RatioInterval

LEAST_PROCESSES = 8
LEAST_PAIRS = 40
MOST_VOIDED = 0.2  # of all pairs


@dataclass(frozen=True)
class Soundness:
    """What a session must be before its interval counts. `doubt` and `overhead` are in logarithms of the ratio."""

    processes: int
    pairs: int
    voided_share: float = 0.0
    doubt: float = 0.0
    overhead: float = 0.0
    direction_right: bool = True
    known_only: bool = False  # faster on operands that come again, and not on those never seen


def judge(
    interval: RatioInterval, control: RatioInterval, soundness: Soundness, margin: float
) -> tuple[str, tuple[str, ...]]:
    """(verdict, reason codes) of a comparison and the control of the same session; `margin` is a fraction above 0."""
    if not margin > 0:
        raise ValueError(f"margin must be above 0, got {margin!r}")
    unsound = reasons_against(soundness, margin)
    if not control.holds(1.0):
        unsound = (*unsound, "control-clear-of-1")
    if unsound:
        return CANNOT_TELL, unsound
    if interval.high < 1 and soundness.known_only:
        return CANNOT_TELL, ("faster-on-known-operands",)
    if interval.high < 1:
        return FASTER, ("interval-below-1",)
    if interval.low > 1:
        return SLOWER, ("interval-above-1",)
    if interval.within(margin):
        return _no_difference(soundness, margin)
    return CANNOT_TELL, ("interval-too-wide",)


def reasons_against(soundness: Soundness, margin: float) -> tuple[str, ...]:
    """Codes of everything that keeps a session from any verdict."""
    found = {
        "too-few-processes": soundness.processes < LEAST_PROCESSES,
        "too-few-pairs": soundness.pairs < LEAST_PAIRS,
        "too-many-voided": soundness.voided_share > MOST_VOIDED,
        "clock-too-coarse": soundness.doubt > margin / 2,
        "direction-control-failed": not soundness.direction_right,
    }
    return tuple(code for code, holds in found.items() if holds)


def _no_difference(soundness: Soundness, margin: float) -> tuple[str, tuple[str, ...]]:
    """The cost of a reading stands on both sides and draws their ratio to 1: that is no sign of equality."""
    if soundness.overhead > margin / 4:
        return CANNOT_TELL, ("overhead-dominated",)
    return NO_DIFFERENCE, ("within-margin",)
