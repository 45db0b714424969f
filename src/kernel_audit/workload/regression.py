"""The regression step: predict targets from features, objective the mean of the squared residuals."""

from __future__ import annotations

from typing import TypeVar

Array = TypeVar("Array")  # of NumPy or JAX


def mean_gradient(features: Array, weights: Array, targets: Array) -> Array:
    """(2/N) X^T (X w - y): the gradient of |X w - y|^2 / N with respect to w.

    `features` X has shape (N, d), `weights` w (d,), `targets` y (N,), all of one float dtype; the result has shape (d,) and
    that dtype. On the rows of a shard, N is the shard's own count, so the result is a local mean.

    Raises ValueError for other ranks, sizes that do not fit, and no examples.
    """
    shapes = (features.shape, weights.shape, targets.shape)
    if tuple(map(len, shapes)) != (2, 1, 1) or features.shape != (len(targets), len(weights)):
        raise ValueError(f"features (N, d), weights (d,) and targets (N,) are needed, got {shapes}")
    if len(targets) == 0:
        raise ValueError(f"a mean needs at least one example, got features of shape {features.shape}")
    return (2 / len(targets)) * (features.T @ (features @ weights - targets))
