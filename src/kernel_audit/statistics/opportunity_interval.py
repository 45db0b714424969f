"""The opportunity of a region with the uncertainty of its share, from the steps that were profiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_audit.statistics.interval import LEVEL, REPLICATES
from kernel_audit.statistics.opportunity import conditional_speedup, speedup_limit


@dataclass(frozen=True)
class Opportunity:
    """A share of the step and what follows from it, each as (low, value, high); ratios, `limit` infinite for a share of 1."""

    share: tuple[float, float, float]
    gain: tuple[float, float, float]
    limit: tuple[float, float, float]


def opportunity(
    region_s: Sequence[float],
    step_s: Sequence[float],
    local_speedup: float,
    seed: int,
    *,
    level: float = LEVEL,
    replicates: int = REPLICATES,
) -> Opportunity:
    """Share, conditional speed-up at `local_speedup` and its limit, for one region of several profiled steps.

    The share is the region's total over the steps' total, so long steps weigh more; steps are resampled whole, since a region
    and its step are slow together. Valid for the platform that was profiled and no other. ValueError for columns of two
    lengths, less than two steps, or a region longer than its step.
    """
    import numpy as np

    region, step = np.asarray(region_s, np.float64), np.asarray(step_s, np.float64)
    if region.shape != step.shape or len(step) < 2:
        raise ValueError(f"two steps or more with both times are needed, got {region.shape} and {step.shape}")
    if not (region >= 0).all() or not (step > 0).all() or not (region <= step).all():
        raise ValueError("a region takes from 0 to all of its step")
    words = np.random.PCG64(seed).random_raw(replicates * len(step)).reshape(replicates, len(step)) >> np.uint64(32)
    drawn = (words * np.uint64(len(step))) >> np.uint64(32)
    shares = np.minimum(region[drawn].sum(axis=1) / step[drawn].sum(axis=1), 1.0)
    tail = (1 - level) / 2
    low, high = (float(each) for each in np.quantile(shares, [tail, 1 - tail]))
    value = min(float(region.sum() / step.sum()), 1.0)
    share = (min(low, value), value, max(high, value))
    gains = sorted(conditional_speedup(each, local_speedup) for each in share)
    return Opportunity(
        share=share,
        gain=(gains[0], gains[1], gains[2]),
        limit=(speedup_limit(share[0]), speedup_limit(share[1]), speedup_limit(share[2])),
    )
