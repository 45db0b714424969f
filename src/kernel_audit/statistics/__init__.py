"""Arithmetic on shares and samples: the same code for who measures, who verifies and who decides.

No JAX; NumPy is imported where it is used. `session_verdict` is the way from a session's raw samples to what it says.
"""

from kernel_audit.statistics.achieved import (
    COPY,
    FLOOR_ALLOWANCE,
    LARGE_BYTES,
    PRODUCT,
    achieved,
    ceiling_per_s,
    largest_ceiling,
    least_s,
    pilot_ratio,
)
from kernel_audit.statistics.crossover import Crossing, Crossover, crossover
from kernel_audit.statistics.interval import RatioInterval, ratio_interval
from kernel_audit.statistics.opportunity import conditional_speedup, needed_speedup, speedup_limit
from kernel_audit.statistics.pairs_needed import RatioNoise, pairs_needed, ratio_noise
from kernel_audit.statistics.ratios import clock_doubt, log_ratios
from kernel_audit.statistics.recomputed import recomputed_differences
from kernel_audit.statistics.resampling import Interval, difference_interval, share_interval
from kernel_audit.statistics.roofline import attainable_per_s, balance, intensity
from kernel_audit.statistics.session_verdict import refusals, session_verdict
from kernel_audit.statistics.step_estimate import (
    AGREES,
    LESS,
    MORE,
    StepEstimate,
    as_interval,
    beside_estimate,
    step_estimate,
    step_ratio,
)
from kernel_audit.statistics.steps import Step, process_seed, process_steps
from kernel_audit.statistics.summary import median, percentile_90, robust_cv
from kernel_audit.statistics.verdict import Soundness, judge

__all__ = [
    "AGREES",
    "COPY",
    "FLOOR_ALLOWANCE",
    "LARGE_BYTES",
    "LESS",
    "MORE",
    "PRODUCT",
    "Crossing",
    "Crossover",
    "Interval",
    "RatioInterval",
    "RatioNoise",
    "Soundness",
    "Step",
    "StepEstimate",
    "achieved",
    "as_interval",
    "attainable_per_s",
    "balance",
    "beside_estimate",
    "ceiling_per_s",
    "clock_doubt",
    "conditional_speedup",
    "crossover",
    "difference_interval",
    "intensity",
    "judge",
    "largest_ceiling",
    "least_s",
    "log_ratios",
    "median",
    "needed_speedup",
    "pairs_needed",
    "percentile_90",
    "pilot_ratio",
    "process_seed",
    "process_steps",
    "ratio_interval",
    "ratio_noise",
    "recomputed_differences",
    "refusals",
    "robust_cv",
    "session_verdict",
    "share_interval",
    "speedup_limit",
    "step_estimate",
    "step_ratio",
]
