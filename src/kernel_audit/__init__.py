"""kernel-audit: does a custom JAX/Pallas kernel earn its complexity in the workload it is for?

An audit file uses the names below. Nothing here loads JAX; `capture` does, when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Loaded when first used, so that `kernel-audit --help` pays for none of them.
_HOMES = {
    "audit": "kernel_audit.contract.declare",
    "baseline": "kernel_audit.contract.words",
    "between": "kernel_audit.contract.words",
    "built_by": "kernel_audit.contract.words",
    "capture": "kernel_audit.program",
    "complete_step": "kernel_audit.contract.workload",
    "control": "kernel_audit.contract.words",
    "derived": "kernel_audit.contract.words",
    "door": "kernel_audit.contract.words",
    "error": "kernel_audit.contract.words",
    "exact": "kernel_audit.contract.words",
    "examples_per_second": "kernel_audit.contract.words",
    "multiple": "kernel_audit.contract.words",
    "on": "kernel_audit.contract.words",
    "p99_time": "kernel_audit.contract.words",
    "peak_bytes": "kernel_audit.contract.words",
    "probe": "kernel_audit.contract.words",
    "refuse": "kernel_audit.contract.words",
    "row_permutation": "kernel_audit.contract.words",
    "sequence": "kernel_audit.contract.words",
    "step_time": "kernel_audit.contract.words",
    "ulp": "kernel_audit.contract.words",
    "values": "kernel_audit.contract.words",
}

__all__ = sorted([*_HOMES, "__version__"])


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kernel_audit' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
