"""What a whole step could gain from a faster part of it. Derived from a share, not measured.

Both figures hold as long as the rest of the step takes the time that it took, and only on the platform on which the share
was profiled: a change of one part can move communication or scheduling, and with them the share itself.
"""

from __future__ import annotations

import math


def conditional_speedup(share: float, local_speedup: float) -> float:
    """1 / ((1 - p) + p / s): the speed-up of the step when its part with share p becomes s times as fast.

    `share` is a fraction of the step's time, from 0 to 1; `local_speedup` is a ratio above 0, below 1 for a part that
    becomes slower, and may be infinite. The result is a ratio, infinite where nothing is left.

    Raises ValueError for a share outside [0, 1] and a speed-up that is not above 0; neither may be NaN.
    """
    _require_share(share)
    if not local_speedup > 0:
        raise ValueError(f"local_speedup must be above 0, got {local_speedup!r}")
    left = (1 - share) + share / local_speedup
    return 1 / left if left > 0 else math.inf


def speedup_limit(share: float) -> float:
    """1 / (1 - p): what the speed-up of the step cannot exceed, were its part with share p to cost nothing.

    Infinite for a share of 1. Raises ValueError for a share outside [0, 1] or NaN.
    """
    _require_share(share)
    return 1 / (1 - share) if share < 1 else math.inf


def needed_speedup(share: float, margin: float) -> float:
    """p / (p - m): how much faster the part must become for the step to take the share `margin` (m) less time.

    From 1 - m = (1 - p) + p / s. Infinite where not even a part of no cost would do: for m >= p > 0, and for m > p = 0; 1 where
    nothing is asked. Raises ValueError for a share outside [0, 1] or a margin outside [0, 1).
    """
    _require_share(share)
    if not 0 <= margin < 1:
        raise ValueError(f"margin must be a fraction of the step in [0, 1), got {margin!r}")
    if margin == 0:
        return 1.0
    return share / (share - margin) if share > margin else math.inf


def _require_share(share: float) -> None:
    if not 0 <= share <= 1:
        raise ValueError(f"share must be a fraction of the step from 0 to 1, got {share!r}")
