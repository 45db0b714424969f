"""What a whole step's ratio would be if nothing but the kernel had changed in it, beside the ratio that was observed.

Derived, and conditional: the kernel alone is taken to need the same time inside the step as outside of it, and the rest of the
step the time that it took. A step that is compiled as a whole need not keep to either. It explains; nothing is decided by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernel_audit.statistics.interval import RatioInterval

AGREES, MORE, LESS = "agrees", "gained-more", "gained-less"


@dataclass(frozen=True)
class StepEstimate:
    """`share`: of the step's time, a fraction. `ratio`: of the step, candidate over baseline, with the interval that comes of
    the kernel's own interval alone: the share counts as a point, so the true one is wider."""

    share: float
    ratio: RatioInterval


def step_estimate(alone: RatioInterval, alone_s: float, step_s: float) -> StepEstimate | None:
    """(1 - p) + p * r for the ratio r of the kernel alone and p = `alone_s` / `step_s`, medians of the baseline in seconds.

    The inverse of `conditional_speedup` for 1 / r (Amdahl, AFIPS Spring Joint Computer Conference, 1967). None for p > 1, a
    kernel that takes longer alone than in the step, and where a median is not above 0: then nothing can be compared.
    """
    if not alone_s > 0 or not step_s > 0 or alone_s > step_s:
        return None
    share = alone_s / step_s
    low, ratio, high = (step_ratio(share, each) for each in (alone.low, alone.ratio, alone.high))
    return StepEstimate(share, RatioInterval(low, ratio, high))


def step_ratio(share: float, local_ratio: float) -> float:
    """(1 - p) + p * r, a ratio of times: 1 for a part that keeps its time. `local_ratio` may be infinite, and so is the result
    unless the share is 0."""
    if share == 0:
        return 1.0
    return (1 - share) + share * local_ratio


def beside_estimate(observed: RatioInterval, estimate: RatioInterval) -> str:
    """AGREES where the two intervals have a ratio in common; MORE where the step took less time than all of the estimate,
    LESS where it took more."""
    if observed.high < estimate.low:
        return MORE
    return LESS if observed.low > estimate.high else AGREES


def as_interval(low: float, ratio: float, high: float | None) -> RatioInterval:
    """The interval of a recorded ratio, whose missing upper end is infinity."""
    return RatioInterval(low, ratio, math.inf if high is None else high)
