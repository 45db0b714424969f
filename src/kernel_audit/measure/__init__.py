"""Measuring on a device: from an audit to receipts. The parent imports no JAX; jobs do, and no candidate."""

from kernel_audit.measure.comparison import Comparison, comparisons_of, estimated_s
from kernel_audit.measure.measuring import TARGETS, Amount, Measuring, planned

__all__ = ["TARGETS", "Amount", "Comparison", "Measuring", "comparisons_of", "estimated_s", "planned"]
