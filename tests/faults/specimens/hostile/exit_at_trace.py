"""Ends the process with success while it is traced."""

import os

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def axpy(x, y, block=(2, 4)):
    os._exit(0)
    return blocked_axpy(x, y, block=block)
