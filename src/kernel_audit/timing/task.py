"""What a program is timed on: operands from a seed, and what its results must be. Host arrays only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Task:
    """`make(seed)` gives operands, `expected(operands)` the results that they must have; `agree` compares two lists of results
    and is "" or says what differs. `how` is a sentence for the record: against what results were judged."""

    make: Callable[[int], Arrays]
    expected: Callable[[Arrays], Arrays]
    agree: Callable[[Arrays, Arrays], str]
    how: str
