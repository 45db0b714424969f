"""Never finishes being imported."""

import time

from kernel_audit.kernels.blocked_axpy import blocked_axpy

while True:
    time.sleep(3600)


def axpy(x, y, block=(2, 4)):
    return blocked_axpy(x, y, block=block)
