"""Real targets: their guards, timings on them, and one run of a kernel on one; described ones, and their compilers.

Nothing here simulates: where a target is asked for and not there, an error says so. The names below load JAX when they are
first used; modules about described targets (described.py, bench.py, records of compilations) run in the parent and do not.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "benchmark_on": "kernel_audit.target.benchmark",
    "main": "kernel_audit.target.runner",
    "require_target": "kernel_audit.target.devices",
    "target_benchmark": "kernel_audit.target.benchmark",
}

__all__ = ["benchmark_on", "main", "require_target", "target_benchmark"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kernel_audit.target' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
