"""Right, and leaves a child in a session of its own, which would live for ten minutes."""

import subprocess
import sys

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def axpy(x, y, block=(2, 4)):
    command = [sys.executable, "-c", "import time; time.sleep(600)", "kernel-audit-orphan-specimen"]
    subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL)
    return blocked_axpy(x, y, block=block)
