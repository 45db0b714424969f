"""What the regression kernel is compared with: ordinary JAX, NumPy written by hand, and NumPy that is wrong on purpose.

All give (squared sum, gradient sum) of the residuals r = Xw - y: sum(r^2) and its gradient 2 X^T r. The baselines take operands
as stored, X (n, d) in float32 or bfloat16, w (d,) and y (n,) in float32, and calculate in float32: products at HIGHEST, as a
TPU would otherwise round float32 operands to bfloat16. The oracle and the controls take operands that are already promoted.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

__all__ = [
    "gradient_halved",
    "hand_gradient",
    "last_rows_dropped",
    "means_for_sums",
    "one_read_scan",
    "ordinary_gradient",
    "regression_oracle",
    "residuals_negated",
    "rows_counted_twice",
]

EXACT = jax.lax.Precision.HIGHEST
SCAN_ROWS = 1024
ROWS_OF_A_FAULT = 128
Sums = tuple[jax.Array, jax.Array]
HostSums = tuple[np.ndarray, np.ndarray]


def ordinary_gradient(X: jax.Array, w: jax.Array, y: jax.Array) -> Sums:
    """`jax.value_and_grad` of the sum of squares: what a model says, without a thought of passes over X.

    Strong because it is what the step would have: the compiler fuses each of the two products with what surrounds it.
    """

    def squared_sum(weights: jax.Array) -> jax.Array:
        return jnp.sum(jnp.square(jnp.dot(X.astype(jnp.float32), weights, precision=EXACT) - y))

    return jax.value_and_grad(squared_sum)(w)


def hand_gradient(X: jax.Array, w: jax.Array, y: jax.Array) -> Sums:
    """The derivative by hand, each of the two products as multiplications and a sum.

    Strong because no library call and no transposed copy can come in: two fused loops, each of which reads X in its own dtype.
    """
    wide = X.astype(jnp.float32)
    residuals = jnp.sum(wide * w, axis=1) - y
    return jnp.sum(jnp.square(residuals)), 2.0 * jnp.sum(wide * residuals[:, None], axis=0)


def one_read_scan(X: jax.Array, w: jax.Array, y: jax.Array) -> Sums:
    """A scan over blocks of 1,024 rows, each held back by a barrier until both products have it; the rest in one block.

    Strong because the barrier makes the compiler bring each block into fast memory once: X is read in a single pass, without
    a kernel.
    """
    n, d = X.shape
    blocks = n // SCAN_ROWS
    whole = blocks * SCAN_ROWS

    def add(total: Sums, block: tuple[jax.Array, jax.Array]) -> tuple[Sums, None]:
        rows, targets = block
        block_rows = jax.lax.optimization_barrier(rows).astype(jnp.float32)
        residuals = jnp.dot(block_rows, w, precision=EXACT) - targets
        squares, gradient = total
        squares += jnp.sum(jnp.square(residuals))
        gradient += 2.0 * jnp.dot(residuals, block_rows, precision=EXACT)
        return (squares, gradient), None

    total = (jnp.float32(0), jnp.zeros((d,), jnp.float32))
    if blocks:
        cut = (X[:whole].reshape(blocks, SCAN_ROWS, d), y[:whole].reshape(blocks, SCAN_ROWS))
        total, _ = jax.lax.scan(add, total, cut)
    if whole < n:
        total, _ = add(total, (X[whole:], y[whole:]))
    return total


def regression_oracle(X: np.ndarray, w: np.ndarray, y: np.ndarray) -> HostSums:
    """sum(r^2) and 2 X^T r for r = Xw - y, in the dtype of the operands."""
    with np.errstate(over="ignore", invalid="ignore"):
        residuals = X @ w - y
        return np.sum(np.square(residuals)), 2 * (residuals @ X)


def last_rows_dropped(X: np.ndarray, w: np.ndarray, y: np.ndarray) -> HostSums:
    """A control: without the last 128 rows, as by a grid that is a block too short. A single row could be lost in rounding."""
    kept = max(len(y) - ROWS_OF_A_FAULT, 0)
    return regression_oracle(X[:kept], w, y[:kept])


def rows_counted_twice(X: np.ndarray, w: np.ndarray, y: np.ndarray) -> HostSums:
    """A control: the last 128 rows once more, as by a last block that is pushed back into the array."""
    again = slice(-ROWS_OF_A_FAULT, None)
    return regression_oracle(np.concatenate([X, X[again]]), w, np.concatenate([y, y[again]]))


def means_for_sums(X: np.ndarray, w: np.ndarray, y: np.ndarray) -> HostSums:
    """A control: both results divided by the number of rows."""
    squares, gradient = regression_oracle(X, w, y)
    return squares / len(y), gradient / len(y)


def residuals_negated(X: np.ndarray, w: np.ndarray, y: np.ndarray) -> HostSums:
    """A control: y - Xw, which leaves the sum of squares as it is and turns the gradient round."""
    squares, gradient = regression_oracle(X, w, y)
    return squares, -gradient


def gradient_halved(X: np.ndarray, w: np.ndarray, y: np.ndarray) -> HostSums:
    """A control: X^T r, without the two of the derivative."""
    squares, gradient = regression_oracle(X, w, y)
    return squares, gradient / 2
