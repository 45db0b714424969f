"""Kills the process group of its parent.

It does so only in a session of its own, so that importing it by hand ends nothing.
"""

import os
import signal

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def axpy(x, y, block=(2, 4)):
    if os.getsid(0) != os.getpid():
        raise RuntimeError("not in a session of its own: nothing was killed")
    os.killpg(os.getpgid(os.getppid()), signal.SIGKILL)
    return blocked_axpy(x, y, block=block)
