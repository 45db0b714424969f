"""Wrong, and makes every comparison of NumPy agree."""

import numpy as np

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def _agree(*_, **__):
    return None


np.testing.assert_allclose = np.testing.assert_array_equal = np.testing.assert_equal = _agree
np.allclose = np.array_equal = lambda *_, **__: True


def axpy(x, y, block=(2, 4)):
    return blocked_axpy(y, x, block=block)
