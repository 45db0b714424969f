"""Asks for 64 GiB while it is traced, and touches them."""

import numpy as np

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def axpy(x, y, block=(2, 4)):
    hoard = np.ones(64 * 2**30, np.uint8)
    assert hoard[-1] == 1
    return blocked_axpy(x, y, block=block)
