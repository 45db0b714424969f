"""Reads address zero while it is imported."""

import ctypes

from kernel_audit.kernels.blocked_axpy import blocked_axpy

ctypes.string_at(0)


def axpy(x, y, block=(2, 4)):
    return blocked_axpy(x, y, block=block)
