"""How many pairs a session needs: fixed from the noise before it starts, and named when it could not tell.

Nothing here looks at the ratio that was found: a number chosen by the result would stop on good luck.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from kernel_audit.statistics.interval import LEVEL
from kernel_audit.statistics.student import student_quantile
from kernel_audit.statistics.summary import NORMAL_MAD

if TYPE_CHECKING:
    import numpy as np

ASSUMED_SPREAD = 0.01  # between processes, where a session shows no more
POWER = 0.97  # asked of the approximation, so that 90 of 100 sessions find it with the noise itself uncertain
ROUND_TO = 100
_MEDIAN_PRICE = math.sqrt(math.pi / 2)  # standard error of a median over that of a mean, for normal noise


@dataclass(frozen=True)
class RatioNoise:
    """Standard deviations of log ratios: of pairs within a process, and of the processes' own medians."""

    within: float
    between: float


def ratio_noise(processes: Sequence[np.ndarray]) -> RatioNoise:
    """The noise of a session, from the log ratios of each process.

    `within` is robust (median absolute deviation about each process's median). `between` is the larger of ASSUMED_SPREAD and
    what the medians show beyond doubt: with ten processes the spread itself is known to a factor of two at best, so it counts
    only as far as the variance of the medians exceeds, at 95 %, what the pairs within explain.
    """
    import numpy as np

    centred = np.concatenate([each - np.median(each) for each in processes])
    within = float(NORMAL_MAD * np.median(np.abs(centred)))
    medians = np.array([np.median(each) for each in processes])
    count = len(medians)
    if count < 2:
        return RatioNoise(within, ASSUMED_SPREAD)
    explained = (_MEDIAN_PRICE * within) ** 2 / (len(centred) / count)
    shown = float(medians.var(ddof=1)) / _chi_square_over_freedom(count - 1) - explained
    return RatioNoise(within, max(ASSUMED_SPREAD, math.sqrt(max(0.0, shown))))


def pairs_needed(noise: RatioNoise, margin: float, processes: int, *, power: float = POWER) -> int | None:
    """Pairs of a whole session that find a true difference of `margin` with probability `power`; a multiple of ROUND_TO.

    None where no number of pairs in that many processes would: the spread between them is too large, and more processes are
    needed. Follows both parts of `ratio_interval`; the power of Student's t is the usual normal approximation of the
    noncentral t.
    """
    target = math.log1p(margin)
    most = 10_000_000
    if not _finds(noise, target, processes, most, power):
        return None
    low, high = 0, most // ROUND_TO
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _finds(noise, target, processes, middle * ROUND_TO, power) else (middle, high)
    return high * ROUND_TO


def _finds(noise: RatioNoise, target: float, processes: int, pairs: int, power: float) -> bool:
    within = (_MEDIAN_PRICE * noise.within) ** 2 / pairs
    error = within + noise.between**2 / processes
    luck = NormalDist().inv_cdf(power)
    normal = NormalDist().inv_cdf((1 + LEVEL) / 2)
    bootstrap = normal * math.sqrt((processes - 1) / processes * error + within) + luck * math.sqrt(error)
    freedom = processes - 1
    t = student_quantile(LEVEL, freedom)
    student = (t * (1 - 1 / (4 * freedom)) + luck * math.sqrt(1 + t * t / (2 * freedom))) * math.sqrt(error)
    return target >= max(bootstrap, student)


def _chi_square_over_freedom(freedom: int, level: float = 0.95) -> float:
    """The `level` quantile of chi square / freedom. Wilson and Hilferty, 1931."""
    third = 2 / (9 * freedom)
    return (1 - third + NormalDist().inv_cdf(level) * math.sqrt(third)) ** 3
