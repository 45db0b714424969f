"""What an axpy kernel is compared with: ordinary JAX, NumPy written by hand, and NumPy that is wrong on
purpose.

The baselines take operands as stored, compute in float32 and cast once. The oracle and the controls take
operands that are already promoted to the dtype of the arithmetic and return that dtype; whoever compares
applies the one final cast.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

__all__ = ["added_jnp", "axpy_oracle", "axpy_rounded_early", "axpy_swapped", "fused_jnp"]


def fused_jnp(x: jax.Array, y: jax.Array) -> jax.Array:
    """2x + y in float32, cast to the dtype of x; arrays of one shape.

    Strong because the compiler makes one loop of it: each operand is read once, the result written once, no
    padding.
    """
    return (2.0 * x.astype(jnp.float32) + y.astype(jnp.float32)).astype(x.dtype)


def added_jnp(x: jax.Array, y: jax.Array) -> jax.Array:
    """x + x + y in float32, cast to the dtype of x; arrays of one shape.

    Strong for the same reason, and free of the multiply-add that a compiler may or may not contract. The
    doubling is exact either way, so both baselines agree bitwise below overflow.
    """
    wide = x.astype(jnp.float32)
    return (wide + wide + y.astype(jnp.float32)).astype(x.dtype)


def axpy_oracle(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """2x + y in the dtype of its operands, element by element; NaN and infinities as IEEE 754 has them."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.add(np.multiply(x, x.dtype.type(2)), y)


def axpy_rounded_early(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A control: 2x rounded to bfloat16 before the addition. Exact, so no control, where x is bfloat16
    already.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        doubled = np.multiply(x, x.dtype.type(2)).astype(ml_dtypes.bfloat16).astype(x.dtype)
        return np.add(doubled, y)


def axpy_swapped(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A control: x + 2y, the oracle with its operands exchanged."""
    return axpy_oracle(y, x)
