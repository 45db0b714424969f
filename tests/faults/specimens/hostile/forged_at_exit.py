"""Wrong, and rewrites every JSON file of its working folder when the process ends."""

import atexit
from pathlib import Path

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def _rewrite():
    for path in Path.cwd().rglob("*.json"):
        path.write_text('{"outcome": "completed", "kernel_error_max": 0.0}\n')


atexit.register(_rewrite)


def axpy(x, y, block=(2, 4)):
    return blocked_axpy(y, x, block=block)
