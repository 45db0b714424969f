"""Reads address zero while it is traced."""

import ctypes

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def axpy(x, y, block=(2, 4)):
    ctypes.string_at(0)
    return blocked_axpy(x, y, block=block)
