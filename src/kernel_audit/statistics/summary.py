"""What one column of samples says: its middle, its 90th percentile, its robust spread."""

from __future__ import annotations

from collections.abc import Sequence

# 1.4826 x the median absolute deviation is the standard deviation, were the samples normal.
NORMAL_MAD = 1.482602218505602


def median(samples: Sequence[float]) -> float:
    """The middle sample, or the mean of the two in the middle. In the unit of the samples; ValueError without any."""
    ordered = sorted(_some(samples))
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def percentile_90(samples: Sequence[float]) -> float:
    """The 90th percentile, linear between neighbours (Hyndman and Fan's type 7, as NumPy's default).

    A summary of the slower calls, not the maximum. ValueError without samples.
    """
    ordered = sorted(_some(samples))
    place = 0.9 * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def robust_cv(samples: Sequence[float]) -> float:
    """1.4826 x median absolute deviation / median: a coefficient of variation that outliers do not move.

    A ratio; 0 where more than half of the samples are equal (a coarse clock). ValueError for a median that is not above 0.
    """
    middle = median(samples)
    if not middle > 0:
        raise ValueError(f"samples must have a median above 0, got {middle!r}")
    return NORMAL_MAD * median([abs(each - middle) for each in samples]) / middle


def _some(samples: Sequence[float]) -> Sequence[float]:
    if not len(samples):
        raise ValueError("no samples")
    return samples
