"""Right, and prints 32 MiB."""

import sys

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def axpy(x, y, block=(2, 4)):
    for _ in range(32):
        sys.stdout.write("x" * 2**20)
    return blocked_axpy(x, y, block=block)
