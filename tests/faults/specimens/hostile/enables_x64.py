"""Turns on 64-bit types for the whole process."""

import jax

from kernel_audit.kernels.blocked_axpy import blocked_axpy

jax.config.update("jax_enable_x64", True)


def axpy(x, y, block=(2, 4)):
    return blocked_axpy(x, y, block=block)
