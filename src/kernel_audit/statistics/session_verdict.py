"""Every figure of a session, recomputed from its raw samples: the one way in which a verdict comes about.

What measures does not judge: it writes a `Session`. This module reads one, here or on any other machine, with the same result.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kernel_audit.records.canonical import digest_of
from kernel_audit.records.timing import (
    CANNOT_TELL,
    REFUSED,
    PairColumns,
    Ratio,
    Session,
    SideTimes,
    TimedProcess,
    TimingVerdict,
)
from kernel_audit.statistics.interval import RatioInterval, ratio_interval
from kernel_audit.statistics.pairs_needed import pairs_needed, ratio_noise
from kernel_audit.statistics.ratios import clock_doubt, log_ratios
from kernel_audit.statistics.summary import median, percentile_90, robust_cv
from kernel_audit.statistics.verdict import LEAST_PROCESSES, Soundness, judge

if TYPE_CHECKING:
    import numpy as np

BELOW_FLOOR_SHARE = 0.01
CLOCKS_APART = 0.10  # of the candidate's time, beyond both intervals
DISPATCH_SHARE = 0.5
LEAST_FRESH = 10  # pairs on fresh operands
IDLE_SHARE = 0.2  # of the CPU time for each second that the other side spends


def session_verdict(session: Session, *, margin: float | None = None) -> TimingVerdict:
    """What a session says, at `margin` or, by default, at that of its plan.

    Voided pairs count in `voided` and nowhere else. Outputs of timed calls that differ, or times below a floor, make the
    session refused: then no time of it is reported. Nor is one where nobody looked at the results of timed calls.
    """
    margin = session.plan.margin if margin is None else margin
    comparison = _valid(session, lambda each: each.comparison)
    control = _valid(session, lambda each: each.control)
    if refused := refusals(session):
        return _without_figures(session, margin, refused, REFUSED)
    if unknown := _unknown(session, comparison, control):
        return _without_figures(session, margin, unknown, CANNOT_TELL)
    left, right = (_column(comparison, side) for side in ("left_s", "right_s"))
    medians, step_s = (median(left), median(right)), session.clock.step_s
    doubt = clock_doubt(medians, step_s)
    logs = [log_ratios(each.left_s, each.right_s, step_s) for each in comparison]
    own_logs = [log_ratios(each.left_s, each.right_s, step_s) for each in control]
    interval = ratio_interval(logs, session.plan.seed, doubt=doubt)
    own = ratio_interval(own_logs, session.plan.seed + 1, doubt=clock_doubt((medians[1], medians[1]), step_s))
    soundness = _soundness(session, comparison, medians, interval)
    verdict, reasons = judge(interval, own, soundness, margin)
    second, findings = _second_clock(session, comparison, interval)
    return TimingVerdict(
        session=session.id,
        session_digest=digest_of(session),
        verdict=verdict,
        reasons=list(reasons),
        margin=margin,
        ratio=_record(interval),
        control=_record(own),
        second_ratio=second,
        sides=[_times("candidate", left), _times("baseline", right)],
        pairs=soundness.pairs,
        voided=_voided(session),
        processes=len(comparison),
        pairs_needed=_needed(logs, margin) if verdict == CANNOT_TELL else None,
        findings=findings + _dispatch(session, medians),
    )


def _soundness(
    session: Session, comparison: list[PairColumns], medians: tuple[float, float], interval: RatioInterval
) -> Soundness:
    doubt = clock_doubt(medians, session.clock.step_s)
    return Soundness(
        processes=len(comparison),
        pairs=sum(len(each.left_s) for each in comparison),
        voided_share=sum(_voided(session).values()) / max(1, _all_pairs(session)),
        doubt=doubt,
        overhead=2 * session.clock.overhead_s / max(min(medians), session.clock.step_s, 1e-12),
        direction_right=math.isinf(doubt) or _direction_right(session),
        known_only=interval.high < 1 and _known_only(session, comparison),
    )


def _needed(logs: list[np.ndarray], margin: float) -> int | None:
    return pairs_needed(ratio_noise(logs), margin, max(len(logs), LEAST_PROCESSES))


def refusals(session: Session) -> tuple[str, ...]:
    """Codes that forbid to report any time of this session."""
    codes = []
    checks = [check for each in session.processes for check in each.checks]
    if any(check.differing for check in checks if check.role == "candidate"):
        codes.append("timed-output-differs")
    if any(check.differing for check in checks if check.role != "candidate"):
        codes.append("timed-baseline-output-differs")
    floors = {each.role: each.floor_s for each in session.sides}
    for role, name in (("candidate", "left_s"), ("baseline", "right_s")):
        samples = _column([each.comparison for each in session.processes], name)
        below = sum(each + session.clock.step_s < floors.get(role, 0.0) for each in samples)
        if below > BELOW_FLOOR_SHARE * len(samples):
            codes.append("below-floor" if role == "candidate" else "baseline-below-floor")
    return tuple(codes)


def _unknown(session: Session, *columns: Sequence[PairColumns]) -> tuple[str, ...]:
    """The code of what leaves nothing to calculate with."""
    if _unchecked(session):
        return ("outputs-unchecked",)
    return () if all(_enough(each) for each in columns) else ("too-few-pairs",)


def _unchecked(session: Session) -> bool:
    """Whether in some process no result of a timed call of a side was judged; or none on fresh operands, though planned."""
    for process in session.processes:
        for role in ("candidate", "baseline"):
            checks = [each for each in process.checks if each.role == role]
            if not sum(each.checked for each in checks):
                return True
            if session.plan.fresh_every and not sum(each.fresh for each in checks):
                return True
    return False


def _valid(session: Session, pick: Callable[[TimedProcess], PairColumns]) -> list[PairColumns]:
    """The pairs of each process that were not voided; a process without any is left out."""
    kept = (_kept(pick(each)) for each in session.processes)
    return [each for each in kept if each.left_s]


def _kept(columns: PairColumns) -> PairColumns:
    keep = [index for index, void in enumerate(columns.voided) if not void]
    names = ("order", "inputs", "left_s", "right_s", "left_second_s", "right_second_s", "voided")
    picked = {name: [column[i] for i in keep] for name in names if (column := getattr(columns, name))}
    return PairColumns(**picked)


def _enough(columns: Sequence[PairColumns]) -> bool:
    return len(columns) >= 2


def _column(columns: Sequence[PairColumns], name: str) -> list[float]:
    return [sample for each in columns for sample in getattr(each, name)]


def _all_pairs(session: Session) -> int:
    return sum(len(each.comparison.voided) + len(each.control.voided) for each in session.processes)


def _voided(session: Session) -> dict[str, int]:
    columns = [each for process in session.processes for each in (process.comparison, process.control)]
    return dict(sorted(Counter(void for each in columns for void in each.voided if void).items()))


def _direction_right(session: Session) -> bool:
    """The side known to be slower, called so by the same code: else sides are exchanged somewhere."""
    columns = _valid(session, lambda each: each.direction)
    if not columns:
        return not session.plan.direction_pairs
    logs = [value for each in columns for value in log_ratios(each.left_s, each.right_s, session.clock.step_s)]
    return median(logs) > 0


def _known_only(session: Session, comparison: list[PairColumns]) -> bool:
    """Whether the candidate gains on operands that were shown before what it does not on fresh ones: what a stored result does.

    Both intervals must be apart, and the fresh pairs must show nothing, or less than half of the gain (as logarithms): cold
    operands may well change by how much an honest program gains.
    """
    parts = ([], [])
    for each in comparison:
        logs = log_ratios(each.left_s, each.right_s, session.clock.step_s)
        for part, wanted in zip(parts, (True, False), strict=True):
            chosen = logs[[(index < 0) is wanted for index in each.inputs]]
            if len(chosen):
                part.append(chosen)
    if min(len(part) for part in parts) < 2 or sum(len(each) for each in parts[0]) < LEAST_FRESH:
        return False
    fresh, known = (ratio_interval(part, session.plan.seed + 3) for part in parts)
    return known.high < fresh.low and (fresh.high >= 1 or fresh.ratio > math.sqrt(known.ratio))


def _second_clock(
    session: Session, comparison: list[PairColumns], interval: RatioInterval
) -> tuple[Ratio | None, list[str]]:
    """The ratio by the second clock, and a finding where both clocks cannot be right about the candidate."""
    clock = session.second_clock
    if clock is None or not all(len(each.left_second_s) == len(each.left_s) for each in comparison):
        return None, []
    left, right = (_column(comparison, name) for name in ("left_second_s", "right_second_s"))
    doubt = clock_doubt((median(left), median(right)), clock.step_s)
    logs = [log_ratios(each.left_second_s, each.right_second_s, clock.step_s) for each in comparison]
    second = ratio_interval(logs, session.plan.seed + 2, doubt=doubt)
    findings = []
    if clock.kind == "process-cpu":
        # Fewer cores busy for longer is no contradiction; no core busy is one.
        spent = (median(left) + clock.step_s) / max(median(right), clock.step_s)
        if session.scope.platform == "cpu" and spent < IDLE_SHARE * interval.low:
            findings.append("idle-while-timed")
    elif second.low > interval.high * (1 + CLOCKS_APART) or second.high * (1 + CLOCKS_APART) < interval.low:
        findings.append("clocks-disagree")
    return _record(second), findings


def _dispatch(session: Session, medians: tuple[float, float]) -> list[str]:
    dispatch = [each.dispatch_s for each in session.processes if each.dispatch_s > 0]
    if dispatch and median(dispatch) > DISPATCH_SHARE * min(medians):
        return ["dispatch-dominated"]
    return []


def _times(role: str, samples: list[float]) -> SideTimes:
    middle = median(samples)
    spread = robust_cv(samples) if middle > 0 else 0.0
    return SideTimes(role=role, median_s=middle, p90_s=percentile_90(samples), robust_cv=spread)


def _record(interval: RatioInterval) -> Ratio:
    return Ratio(low=interval.low, ratio=interval.ratio, high=interval.high if math.isfinite(interval.high) else None)


def _without_figures(session: Session, margin: float, reasons: tuple[str, ...], verdict: str) -> TimingVerdict:
    return TimingVerdict(
        session=session.id,
        session_digest=digest_of(session),
        verdict=verdict,
        reasons=list(reasons),
        margin=margin,
        ratio=None,
        control=None,
        second_ratio=None,
        sides=[],
        pairs=sum(len(_kept(each.comparison).left_s) for each in session.processes),
        voided=_voided(session),
        processes=len(session.processes),
        pairs_needed=None,
    )
