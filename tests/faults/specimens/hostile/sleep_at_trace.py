"""Never finishes being traced."""

import time

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def axpy(x, y, block=(2, 4)):
    while True:
        time.sleep(3600)
    return blocked_axpy(x, y, block=block)
