"""Values drawn for direct calls, and what they must give: NumPy alone, the same in the worker and in the parent."""

from __future__ import annotations

import ml_dtypes  # registers bfloat16 with NumPy  # noqa: F401
import numpy as np


def fresh_operands(function: str, shape: list[int], dtype: str, seed: int) -> list[np.ndarray]:
    """Operands of a kernel of the course: two matrices of `shape`, or a matrix and a bias for its columns."""
    generator = np.random.default_rng(seed)
    second = shape[1:] if function == "fused_bias_relu" else shape
    return [generator.normal(size=each).astype(np.float32).astype(np.dtype(dtype)) for each in (shape, second)]


def expected_result(function: str, operands: list[np.ndarray]) -> np.ndarray:
    """The result that the contract states: float32 arithmetic and one cast."""
    first, second = (each.astype(np.float32) for each in operands)
    wide = np.maximum(first + second, np.float32(0)) if function == "fused_bias_relu" else 2 * first + second
    return wide.astype(operands[0].dtype)
