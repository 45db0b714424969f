"""A task with a known truth: a chain of equal steps, so a program with more of them takes just that much longer. NumPy only."""

from __future__ import annotations

import numpy as np

from kernel_audit.timing.judging import close_to
from kernel_audit.timing.task import Arrays, Task

ELEMENTS = 4096


def task() -> Task:
    """Any number of steps leads to the same fixed point within float32, so both programs of a pair have one answer."""
    return Task(
        make=_operands,
        expected=_expected,
        agree=close_to(1e-3),
        how="the fixed point of the iteration, in float64 on the host, within 0.1 % of the largest value",
    )


def _operands(seed: int) -> Arrays:
    return [np.random.default_rng(seed).uniform(0.5, 1.5, ELEMENTS).astype(np.float32)]


def _expected(operands: Arrays) -> Arrays:
    return [np.sqrt(operands[0].astype(np.float64))]
