"""Four rules by which benchmarks commonly call a difference, for the study of how often they are wrong. No decision uses them.

Each takes the left and right times of the pairs of a session, in the order in which they ran, and gives "faster", "slower" or
"cannot-tell" for the left side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernel_audit.records.timing import CANNOT_TELL, FASTER, SLOWER

if TYPE_CHECKING:
    import numpy as np

THRESHOLD = 0.02  # below which these rules call nothing
NARROW = 0.02
FIRST_LOOK = 30
BLOCKS = 10


def minimum_of_n(left: np.ndarray, right: np.ndarray) -> str:
    """The fastest call of each side, compared as they are (timeit's advice)."""
    return _called(float(left.min() / right.min()), THRESHOLD)


def ratio_of_means(left: np.ndarray, right: np.ndarray) -> str:
    """The means, compared as they are."""
    return _called(float(left.mean() / right.mean()), THRESHOLD)


def blocked_medians(left: np.ndarray, right: np.ndarray) -> str:
    """All calls of one side, then all of the other; two medians. Here the first half of one column, the second of the other."""
    import numpy as np

    half = len(left) // 2
    return _called(float(np.median(left[:half]) / np.median(right[half:])), THRESHOLD)


def until_narrow(left: np.ndarray, right: np.ndarray) -> str:
    """Pairs until the 95 % interval of the mean log ratio is narrower than 2 % or excludes 1, looked at after each tenth."""
    import numpy as np

    logs = np.log(left) - np.log(right)
    for count in range(FIRST_LOOK, len(logs) + 1, 10):
        part = logs[:count]
        half = 1.96 * float(part.std(ddof=1)) / count**0.5
        middle = float(part.mean())
        if half < abs(middle):
            return FASTER if middle < 0 else SLOWER
        if half < NARROW:
            return CANNOT_TELL
    return CANNOT_TELL


RULES: dict[str, Callable[[np.ndarray, np.ndarray], str]] = {
    "minimum of N": minimum_of_n,
    "ratio of means": ratio_of_means,
    "blocked medians": blocked_medians,
    "until narrow": until_narrow,
}


def _called(ratio: float, threshold: float) -> str:
    if ratio < 1 - threshold:
        return FASTER
    return SLOWER if ratio > 1 + threshold else CANNOT_TELL
