"""Student's t for whole degrees of freedom, from its closed form: no library is needed where samples are taken."""

from __future__ import annotations

import math
from functools import lru_cache


def student_two_sided(t: float, freedom: int) -> float:
    """P(|T| <= t) for t >= 0. Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    if freedom < 1:
        raise ValueError(f"degrees of freedom must be 1 or more, got {freedom!r}")
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    if freedom % 2:
        term, total = cosine, 0.0
        for k in range(1, (freedom - 1) // 2 + 1):
            total += term
            term *= cosine * cosine * (2 * k) / (2 * k + 1)
        return 2 / math.pi * (angle + sine * total)
    term, total = 1.0, 0.0
    for k in range(1, freedom // 2 + 1):
        total += term
        term *= cosine * cosine * (2 * k - 1) / (2 * k)
    return sine * total


@lru_cache(maxsize=256)
def student_quantile(level: float, freedom: int) -> float:
    """The t with P(|T| <= t) = `level`, by bisection to the last digits; `level` is above 0 and below 1."""
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    low, high = 0.0, 1.0
    while student_two_sided(high, freedom) < level:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if student_two_sided(middle, freedom) < level:
            low = middle
        else:
            high = middle
    return high
