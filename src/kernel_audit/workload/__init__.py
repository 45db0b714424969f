"""The workload that a kernel is for: the regression step, cut into shards of examples, and how their results are joined.

Array code works on NumPy and JAX arrays alike and imports neither.
"""

from kernel_audit.workload.aggregation import count_weighted_mean, unweighted_mean
from kernel_audit.workload.regression import mean_gradient

__all__ = ["count_weighted_mean", "mean_gradient", "unweighted_mean"]
