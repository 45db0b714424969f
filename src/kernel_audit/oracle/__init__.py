"""References in higher precision and the error split. `lifted` and `noise` load JAX and are imported where they are used."""

from kernel_audit.oracle.budget import SAMPLES, budget, unit_in_last_place
from kernel_audit.oracle.expectation import as_leaves, expectation, flush, leaves, smallest_normal

__all__ = [
    "SAMPLES",
    "as_leaves",
    "budget",
    "expectation",
    "flush",
    "leaves",
    "smallest_normal",
    "unit_in_last_place",
]
