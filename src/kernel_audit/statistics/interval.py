"""The median of pair ratios with a two-level bootstrap interval: processes first, then pairs within each.

Pairs of one process share its memory layout and its compiled code, so they are no independent draws; a bootstrap over pairs
alone calls far too many differences. Two things are done about the small number of processes:

* the percentile interval of the two-level bootstrap counts only (P - 1) / P of the spread between P processes and takes its
  tails to be normal; where that spread dominates it is too narrow;
* so the interval is never narrower than Student's t with P - 1 degrees of freedom over the medians of the processes.

Random numbers are the raw words of PCG64, whose sequence NumPy keeps in every version: `verify` gets the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_audit.statistics.student import student_quantile

if TYPE_CHECKING:
    import numpy as np

LEVEL = 0.99
REPLICATES = 2000
_ELEMENTS = 4_000_000  # of one block of replicates, so that a long session stays in memory


@dataclass(frozen=True)
class RatioInterval:
    """A ratio of times with its interval; `low <= ratio <= high`. Below 1 the left side takes less time."""

    low: float
    ratio: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether `value` lies in the interval, ends included."""
        return self.low <= value <= self.high

    def within(self, margin: float) -> bool:
        """Whether the whole interval lies between 1 / (1 + margin) and 1 + margin."""
        return 1 / (1 + margin) <= self.low and self.high <= 1 + margin


def ratio_interval(
    processes: Sequence[np.ndarray],
    seed: int,
    *,
    doubt: float = 0.0,
    level: float = LEVEL,
    replicates: int = REPLICATES,
) -> RatioInterval:
    """The interval of exp(median of all logarithms). `processes` holds the log ratios of each process, none empty.

    `doubt`, a logarithm, widens both ends: what the clock cannot tell (`clock_doubt`). A median of an even number is the mean
    of the two logarithms in the middle, so exchanging the sides gives exactly the inverse. ValueError for less than two
    processes or an empty one.
    """
    import numpy as np

    if len(processes) < 2 or any(not len(each) for each in processes):
        raise ValueError(f"two processes with pairs are needed, got {[len(each) for each in processes]} pairs")
    estimate = float(np.median(np.concatenate(processes)))
    medians = two_level_medians(processes, seed, replicates)
    tail = (1 - level) / 2
    low, high = (float(each) for each in np.quantile(medians, [tail, 1 - tail]))
    least = _student_half_width(processes, level)
    low = min(low, estimate - least) - doubt
    high = max(high, estimate + least) + doubt
    return RatioInterval(_exp(low), _exp(estimate), _exp(high))


def two_level_medians(processes: Sequence[np.ndarray], seed: int, replicates: int = REPLICATES) -> np.ndarray:
    """Medians of resampled sessions, float64 of shape (replicates,).

    A replicate draws as many processes as there are and from each drawn one as many pairs as a process has on average, all
    with replacement.
    """
    import numpy as np

    count = len(processes)
    sizes = np.array([len(each) for each in processes], np.uint64)
    drawn = max(1, round(int(sizes.sum()) / count))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    ordered, ranks = _ranked(np.concatenate(processes))
    generator = np.random.PCG64(seed)
    block = max(1, _ELEMENTS // (count * drawn))
    medians = np.empty(replicates)
    for begin in range(0, replicates, block):
        size = min(block, replicates - begin)
        process = _draws(generator, np.full((size, count, 1), count, np.uint64))
        pairs = _draws(generator, np.broadcast_to(sizes[process], (size, count, drawn)))
        pairs += starts[process]
        medians[begin : begin + size] = _medians(ordered, ranks.take(pairs).reshape(size, count * drawn))
    return medians


def _ranked(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(sorted values, the place of each value among them): places are small whole numbers, which are faster to select."""
    import numpy as np

    order = np.argsort(values, kind="stable")
    ranks = np.empty(len(values), np.int32)
    ranks[order] = np.arange(len(values), dtype=np.int32)
    return values[order], ranks


def _draws(generator: np.random.PCG64, below: np.ndarray) -> np.ndarray:
    """Whole numbers from 0 to `below` - 1, int64 of its shape, from half a raw word each (the low half first)."""
    import numpy as np

    words = generator.random_raw((below.size + 1) // 2).astype("<u8", copy=False)
    halves = words.view("<u4")[: below.size].reshape(below.shape).astype(np.uint64)
    halves *= below
    halves >>= np.uint64(32)
    return halves.view(np.int64)


def _medians(ordered: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    import numpy as np

    length = ranks.shape[1]
    half = length // 2
    middle = (half,) if length % 2 else (half - 1, half)
    selected = np.partition(ranks, middle, axis=1)[:, list(middle)]
    return ordered[selected].mean(axis=1)


def _student_half_width(processes: Sequence[np.ndarray], level: float) -> float:
    import numpy as np

    medians = np.array([np.median(each) for each in processes])
    return student_quantile(level, len(medians) - 1) * float(medians.std(ddof=1)) / math.sqrt(len(medians))


def _exp(value: float) -> float:
    """exp, infinite where a float64 ends."""
    return math.exp(value) if value < 700 else math.inf
