"""Pairs as logarithms of ratios: the scale on which faster and slower are the same size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

TIME_FLOOR_S = 1e-12  # where a clock states no step: no call takes less


def log_ratios(left_s: Sequence[float], right_s: Sequence[float], step_s: float = 0.0) -> np.ndarray:
    """log(left / right) of each pair, float64.

    A clock of step `step_s` can give 0, or less where it was set back, for a call that took some time: such a sample counts
    as half a step. How little is then known is the business of `clock_doubt`. ValueError for columns of two lengths.
    """
    import numpy as np

    left, right = np.asarray(left_s, np.float64), np.asarray(right_s, np.float64)
    if left.shape != right.shape:
        raise ValueError(f"both sides of a pair are needed, got {left.shape} and {right.shape} samples")
    least = max(step_s / 2, TIME_FLOOR_S)
    return np.log(np.maximum(left, least)) - np.log(np.maximum(right, least))


def clock_doubt(medians_s: Sequence[float], step_s: float) -> float:
    """By how much the logarithm of a ratio of these medians may be off, since each is known to one step of the clock only.

    Two readings make a sample, each rounded to a step, so a sample is off by less than one. Infinite where a median is no
    longer than a step.
    """
    import math

    if step_s <= 0:
        return 0.0
    if min(medians_s) <= step_s:
        return math.inf
    return sum(-math.log1p(-step_s / each) for each in medians_s)
