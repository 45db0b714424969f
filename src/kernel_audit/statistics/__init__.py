"""Arithmetic on shares and samples: the same code for who measures, who verifies and who decides. No JAX, no NumPy."""

from kernel_audit.statistics.opportunity import conditional_speedup, speedup_limit

__all__ = ["conditional_speedup", "speedup_limit"]
