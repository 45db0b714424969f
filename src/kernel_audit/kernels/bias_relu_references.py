"""What a bias-and-ReLU kernel is compared with: ordinary JAX, NumPy written by hand, and NumPy that is wrong on purpose.

The baselines take operands as stored, compute in float32 and cast once. The oracle and the controls take operands that are
already promoted to the dtype of the arithmetic and return that dtype; whoever compares applies the one final cast.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

__all__ = [
    "bias_along_rows",
    "bias_relu_oracle",
    "bias_relu_rounded_early",
    "library_relu",
    "maximum_jnp",
    "nan_to_zero",
    "relu_before_bias",
]


def maximum_jnp(x: jax.Array, bias: jax.Array) -> jax.Array:
    """max(x + bias, 0) in float32, cast to the dtype of x; a matrix (m, n) and a vector (n,).

    Strong because the compiler makes one loop of it: x is read once, the result written once, no padding.
    """
    return jnp.maximum(x.astype(jnp.float32) + bias.astype(jnp.float32), 0.0).astype(x.dtype)


def library_relu(x: jax.Array, bias: jax.Array) -> jax.Array:
    """The same with `jax.nn.relu`: what a model calls that was written without kernels in mind."""
    return jax.nn.relu(x.astype(jnp.float32) + bias.astype(jnp.float32)).astype(x.dtype)


def bias_relu_oracle(x: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """max(x + bias, 0) in the dtype of its operands; bias[j] belongs to column j, and NaN stays NaN."""
    return _relu(_sum(x, bias))


def bias_relu_rounded_early(x: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """A control: the bias rounded to bfloat16 first. Exact, so no control, where it is bfloat16 already."""
    with np.errstate(over="ignore", invalid="ignore"):
        coarse = bias.astype(ml_dtypes.bfloat16).astype(bias.dtype)
    return _relu(_sum(x, coarse))


def bias_along_rows(x: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """A control: the bias laid along the rows instead, repeated or cut to their number."""
    return _relu(_sum(x, np.resize(bias, x.shape[0])[:, np.newaxis]))


def relu_before_bias(x: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """A control: max(x, 0) + bias, the two stages exchanged."""
    return _sum(_relu(x), bias)


def nan_to_zero(x: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """A control: a ReLU by comparison, which turns NaN into zero."""
    total = _sum(x, bias)
    return np.where(total > 0, total, x.dtype.type(0))


def _sum(x: np.ndarray, bias: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        return np.add(x, bias)


def _relu(total: np.ndarray) -> np.ndarray:
    return np.maximum(total, total.dtype.type(0))
