"""The TPU runner in a process of its own, where a CPU poses as a TPU and models without a kernel are let through."""

from __future__ import annotations

import sys
from pathlib import Path

import jax

from kernel_audit.target import attempt, devices, main

jax.default_backend = lambda: "tpu"
attempt.platform_of = devices.platform_of = lambda device: "tpu"
attempt.require_compiled_kernels = lambda *_: None

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], target="tpu", solution=Path("none.py")))
