"""What was asked for, and what a device showed: each objective as a ratio of candidate over baseline, below 1 is better."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_audit.contract import Worth
from kernel_audit.records import CANNOT_TELL, FASTER, REFUSED, Receipt, SideTimes
from kernel_audit.statistics import FLOOR_ALLOWANCE, LARGE_BYTES

TIMES = ("step-time", "examples-per-second")
MEASURED = (*TIMES, "peak-bytes", "error")

MET, SHORT, OPEN = "met", "short", "open"


@dataclass(frozen=True)
class Shown:
    """A ratio with its interval; what has no samples has one number for all three. `clear`: a time's interval is clear of 1."""

    low: float
    ratio: float
    high: float
    clear: bool = True

    @property
    def text(self) -> str:
        return f"{self.ratio:.3f}" if self.low == self.high else f"{self.ratio:.3f} [{self.low:.3f}, {self.high:.3f}]"


def shown(objective: str, receipt: Receipt) -> Shown | None:
    """What a receipt shows of an objective; None where it cannot tell."""
    if objective in TIMES:
        return _time(receipt)
    if objective == "peak-bytes":
        peaks = {each.role: each.peak_bytes for each in receipt.memory}
        return _point(peaks.get("candidate"), peaks.get("baseline"))
    if objective == "error":
        return _point(_candidates_error(receipt), _least_error(receipt))
    return None


def sound(receipt: Receipt) -> bool:
    """Whether its session can carry a claim: everything held but that the interval may be wide."""
    verdict = receipt.verdict
    if verdict is None or verdict.verdict == REFUSED or verdict.ratio is None:
        return False
    return verdict.verdict != CANNOT_TELL or verdict.reasons == ["interval-too-wide"]


def gain(worth: Worth, seen: Shown | None) -> str:
    """Whether the primary objective is met by its margin, shown to fall short of it, or open."""
    if seen is None:
        return OPEN
    most = limit(worth)
    if seen.low > most:
        return SHORT
    return MET if seen.high <= most and seen.clear else OPEN


def limit(worth: Worth) -> float:
    """The largest ratio that has what is asked for."""
    return 1 / (1 + worth.margin) if worth.objective == "examples-per-second" else 1 - worth.margin


def loss(margin: float, seen: Shown | None) -> str:
    """The same of a margin not to lose: MET where nothing more than it was lost."""
    if seen is None:
        return OPEN
    if seen.low > 1 + margin:
        return SHORT
    return MET if seen.high <= 1 + margin else OPEN


def break_even_steps(receipt: Receipt) -> float | None:
    """Steps after which the longer cold compile is earned back; None where no time is saved, or none is known."""
    seconds, sides = receipt.compile_s, _sides(receipt)
    if not {"candidate", "baseline"} <= seconds.keys() or len(sides) < 2:
        return None
    saved_s = sides["baseline"].median_s - sides["candidate"].median_s
    if saved_s <= 0:
        return None
    return max(0.0, (seconds["candidate"] - seconds["baseline"]) / saved_s)


def best_by_floor(receipt: Receipt) -> float | None:
    """The least ratio that the measured ceilings leave to any kernel: the baseline's bytes at copy speed over its time. None
    where operands may lie in a cache."""
    for each in receipt.achieved:
        if each.role == "baseline" and each.share_of_copy is not None and each.least_bytes >= LARGE_BYTES:
            return each.share_of_copy / FLOOR_ALLOWANCE
    return None


def _time(receipt: Receipt) -> Shown | None:
    verdict = receipt.verdict
    if not sound(receipt) or verdict is None or verdict.ratio is None:
        return None
    high = math.inf if verdict.ratio.high is None else verdict.ratio.high
    return Shown(verdict.ratio.low, verdict.ratio.ratio, high, clear=verdict.verdict == FASTER)


def _point(candidate: float | None, baseline: float | None) -> Shown | None:
    if candidate is None or baseline is None:
        return None
    ratio = candidate / baseline if baseline > 0 else (1.0 if candidate == 0 else math.inf)
    return Shown(ratio, ratio, ratio)


def _candidates_error(receipt: Receipt) -> float | None:
    name = next((each.name for each in receipt.programs if each.role == "candidate"), "")
    return _error(receipt, "candidate", name)


def _least_error(receipt: Receipt) -> float | None:
    """That of the most exact baseline that ran, whichever was the quickest."""
    failed = {each.name for each in receipt.failures if each.role == "baseline"}
    names = {each.name for each in receipt.checks if each.role == "baseline"} - failed
    known = [error for each in names if (error := _error(receipt, "baseline", each)) is not None]
    return min(known, default=None)


def _error(receipt: Receipt, role: str, name: str) -> float | None:
    """The largest at any fixture; None where there is none, or one that is not finite."""
    found = [each.error_max for each in receipt.checks if (each.role, each.name) == (role, name)]
    known = [each for each in found if each is not None]
    return max(known) if known and len(known) == len(found) else None


def _sides(receipt: Receipt) -> dict[str, SideTimes]:
    sides: Sequence[SideTimes] = receipt.verdict.sides if receipt.verdict is not None else ()
    return {each.role: each for each in sides}
