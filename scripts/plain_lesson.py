"""The eight lesson cells without the tool: one process, the kernel in the TPU interpreter, a NumPy comparison.

What `scripts/bench lesson` measures `kernel-audit check axpy --cells lesson` against.
"""

import ml_dtypes
import numpy as np

from kernel_audit.kernels.pipelined_axpy import pipelined_axpy

SHAPES = [(1, 1), (8, 128), (9, 129), (17, 257)]


def main() -> None:
    """Raises AssertionError when a result is not the one that float32 arithmetic with one last rounding gives."""
    rng = np.random.default_rng(42)
    for shape in SHAPES:
        x, y = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
        for dtype in (np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)):
            stored_x, stored_y = x.astype(dtype), y.astype(dtype)
            wanted = (2 * stored_x.astype(np.float32) + stored_y.astype(np.float32)).astype(dtype)
            np.testing.assert_array_equal(np.asarray(pipelined_axpy(stored_x, stored_y)), wanted)
    print(f"{2 * len(SHAPES)} cells agree")


if __name__ == "__main__":
    main()
