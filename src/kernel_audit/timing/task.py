"""What a program is timed on: operands from a seed, and what its results must be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Task:
    """`make(seed)` gives operands, `expected(operands)` the results that they must have; `agree` compares two lists of results
    and is "" or says what differs. `how` is a sentence for the record: against what results were judged.

    `generate(seed)`, where given, makes the operands on the device instead, for those too large to cross from the host for
    every fresh pair; `expected` is then given these device arrays. The same seed must give the same values.
    """

    make: Callable[[int], Arrays]
    expected: Callable[[Arrays], Arrays]
    agree: Callable[[Arrays, Arrays], str]
    how: str
    generate: Callable[[int], Sequence[Any]] | None = None
