"""What errors a target's programs may have where the reference is in float64: as large as a baseline's, with allowances stated.

A baseline's errors come from few draws, and the candidate is judged in many calls. Of a result with thousands of elements the
largest error hardly changes from draw to draw. Of one number it does: were errors normal, the largest of three would be passed
by an equally good program in every other session of forty calls. `safety` allows for that: with it, and a factor of 2, an
equally good program is accused in fewer than two sessions of a hundred, whatever the size of the result (simulated in
tests/unit/measure/test_budgets.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_audit.oracle import unit_in_last_place

FEW = 1024  # a result with fewer elements has `safety` above 1
FEW_VALUES = 20.0
# A baseline this many times as far off as the best one is wrong: it fails its own check, and nobody is held to it.
FAR = 8.0
# A baseline whose error is this share of the largest value that it should have is wrong, even where it is the only one.
HOPELESS = 0.25


@dataclass(frozen=True)
class Budgets:
    """The largest errors allowed, one a result; and the results in which a baseline is wrong, by its id, with the reason."""

    allowed: list[float]
    wrong: dict[str, list[int]]
    why: dict[str, str]


def safety(draws: int, elements: int) -> float:
    """What the largest error of so many draws of a result is multiplied with, as the draws may all have been lucky."""
    return 1.0 if elements >= FEW else 1.0 + FEW_VALUES / max(1, draws * elements)


def budgets_of(told: Mapping[str, dict[str, Any]], factor: float) -> Budgets:
    """From what `check_programs` told of each baseline: `factor` times `safety` times the largest error of a baseline that is
    not wrong itself. `allowed` is empty where there is none."""
    known = {name: each for name, each in told.items() if _complete(each)}
    if not known:
        return Budgets([], {}, {})
    width = min(len(each["errors"][0]) for each in known.values())
    tables = {name: [_Column(each, place) for place in range(width)] for name, each in known.items()}
    wrong: dict[str, list[int]] = {}
    why: dict[str, str] = {}
    for place in range(width):
        best = min(columns[place].error + columns[place].half_ulp for columns in tables.values())
        for name, columns in tables.items():
            if text := columns[place].fault(best):
                wrong.setdefault(name, []).append(place)
                why.setdefault(name, f"result {place}: {text}")
    right = [columns for name, columns in tables.items() if name not in wrong]
    if not right:
        return Budgets([], wrong, why)
    allowed = [factor * max(each[place].error * each[place].safety for each in right) for place in range(width)]
    return Budgets(allowed, wrong, why)


def half_ulp(told: Mapping[str, Any], place: int, number: int) -> float:
    """What storing a result may cost: half a unit in the last place of its largest expected value."""
    scale, dtype = told["scales"][number][place], told["shapes"][place][1]
    if scale is None or not dtype.startswith(("float", "bfloat")):
        return 0.0
    return float(unit_in_last_place(np.array([scale]), dtype)[0]) / 2


class _Column:
    """One result of one baseline over all draws."""

    def __init__(self, told: Mapping[str, Any], place: int) -> None:
        draws = range(len(told["errors"]))
        self.error = max(told["errors"][number][place] for number in draws)
        self.half_ulp = max(half_ulp(told, place, number) for number in draws)
        self.scale = max(told["scales"][number][place] or 0.0 for number in draws)
        self.safety = safety(len(draws), int(np.prod(told["shapes"][place][0], dtype=np.int64)))

    def fault(self, best: float) -> str:
        """Why this baseline is wrong, or "". `best` is the least error of any baseline here, and the rounding of the result."""
        if self.error > FAR * self.safety * best:
            return f"off by {self.error:.3g}, more than {FAR * self.safety:.3g} times as far as the best baseline"
        if self.scale and self.error > HOPELESS * self.scale:
            return f"off by {self.error:.3g}, where no value is above {self.scale:.3g}"
        return ""


def _complete(told: Mapping[str, Any]) -> bool:
    """Whether every error is a number."""
    return bool(told["errors"]) and all(None not in row for row in told["errors"])
