"""Arithmetic on shares and samples: the same code for who measures, who verifies and who decides. No JAX, no NumPy."""

from kernel_audit.statistics.opportunity import conditional_speedup, needed_speedup, speedup_limit
from kernel_audit.statistics.resampling import Interval, difference_interval, median, share_interval

__all__ = [
    "Interval",
    "conditional_speedup",
    "difference_interval",
    "median",
    "needed_speedup",
    "share_interval",
    "speedup_limit",
]
