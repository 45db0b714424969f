"""The regression workload on the host: how its data are made, and what is right, in NumPy and in no other way than by hand."""

from __future__ import annotations

import numpy as np

__all__ = ["LEARNING_RATE", "regression_host", "regression_inputs"]

LEARNING_RATE = 0.004
NOISE = 0.1  # of the targets, in standard deviations: the loss does not fall to zero


def regression_inputs(rng: np.random.Generator, dims: dict[str, int]) -> dict[str, np.ndarray]:
    """X (n, d) standard normal, y = X v + 0.1 e with v and e standard normal; the weights w start at zero. Float64, drawn in
    the order X, v, e."""
    n, d = dims["n"], dims["d"]
    X = rng.standard_normal((n, d))
    truth = rng.standard_normal(d)
    y = X @ truth + NOISE * rng.standard_normal(n)
    return {"X": X, "w": np.zeros(d), "y": y}


def regression_host(
    X: np.ndarray, w: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """L(w) = |Xw - y|^2 / n, its gradient 2/n X^T (Xw - y), and w after one step of gradient descent, in the dtype given."""
    residuals = X @ w - y
    gradient = (2.0 / len(y)) * (residuals @ X)
    return np.mean(np.square(residuals)), {"w": gradient}, {"w": w - LEARNING_RATE * gradient}
