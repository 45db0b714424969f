"""Real targets: their guards, timings on them, and one run of a kernel on one. Importing this package imports JAX.

Nothing here simulates: where a target is asked for and not there, an error says so.
"""

from kernel_audit.target.benchmark import benchmark_on, target_benchmark
from kernel_audit.target.devices import require_target
from kernel_audit.target.runner import main

__all__ = ["benchmark_on", "main", "require_target", "target_benchmark"]
