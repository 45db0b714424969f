"""Intervals from resampled steps. Reproducible: a seed and the samples give the same interval wherever they are recomputed.

Steps that follow one another are alike (a lag-1 autocorrelation of up to 0.8 was measured), so neighbours are drawn together:
a circular block bootstrap with blocks of n^(1/3) steps.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernel_audit.statistics.summary import median

CONFIDENCE = 0.95
RESAMPLES = 1000
SEED = 20240607


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval around it, in the unit of the samples; `low` <= `value` <= `high`."""

    value: float
    low: float
    high: float


def share_interval(part: Sequence[float], whole: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """sum(part) / sum(whole) over steps: the share of a part of the step, with its interval.

    `part` and `whole` have one time a step, in one unit. A sum of ratios would weigh a disturbed step like any other; a
    ratio of sums adds up to 1 over all parts. Raises ValueError for no steps, unequal lengths, or a step that takes no
    time.
    """
    if len(part) != len(whole) or not part:
        raise ValueError(f"{len(part)} parts of {len(whole)} steps")
    if min(whole) <= 0:
        raise ValueError(f"a step of {min(whole)!r}")

    def share(chosen: Sequence[int]) -> float:
        return sum(part[each] for each in chosen) / sum(whole[each] for each in chosen)

    return _interval(share, len(part), confidence)


def difference_interval(left: Sequence[float], right: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """The median of left - right over pairs that were measured next to each other, with its interval.

    Raises ValueError for no pairs and for unequal lengths.
    """
    if len(left) != len(right) or not left:
        raise ValueError(f"{len(left)} and {len(right)} samples are no pairs")
    differences = [a - b for a, b in zip(left, right, strict=True)]
    return _interval(lambda chosen: float(median([differences[each] for each in chosen])), len(differences), confidence)


def _interval(statistic: Callable[[Sequence[int]], float], steps: int, confidence: float) -> Interval:
    value = statistic(range(steps))
    block = max(1, round(steps ** (1 / 3)))
    draw = random.Random(SEED).random
    found = []
    for _ in range(RESAMPLES):
        chosen: list[int] = []
        while len(chosen) < steps:
            start = int(draw() * steps)
            chosen += [(start + offset) % steps for offset in range(block)]
        found.append(statistic(chosen[:steps]))
    found.sort()
    tail = (1 - confidence) / 2
    last = len(found) - 1
    low, high = found[int(tail * last)], found[last - int(tail * last)]
    return Interval(value, min(low, value), max(high, value))
