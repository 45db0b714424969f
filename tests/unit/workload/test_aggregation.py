"""Means over shards, joined: the count-weighted mean is the global one for every partition, the unweighted one is not."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_audit.workload import count_weighted_mean, mean_gradient, unweighted_mean

COUNTS = st.lists(st.integers(1, 9), min_size=1, max_size=5)


def drawn(count: int, width: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features (count, width), weights (width,) and targets (count,), float64."""
    rng = np.random.default_rng(count)
    return rng.normal(size=(count, width)), rng.normal(size=width), rng.normal(size=count)


def local_gradients(counts: list[int]) -> tuple[list[np.ndarray], np.ndarray]:
    """The gradient of each shard, and that over all examples."""
    features, weights, targets = drawn(sum(counts))
    ends = np.cumsum(counts)
    shards = [slice(end - count, end) for end, count in zip(ends, counts, strict=True)]
    return [mean_gradient(features[rows], weights, targets[rows]) for rows in shards], mean_gradient(
        features, weights, targets
    )


@given(COUNTS)
def test_the_count_weighted_mean_is_the_global_gradient(counts: list[int]):
    local, whole = local_gradients(counts)
    np.testing.assert_allclose(count_weighted_mean(local, counts), whole, rtol=1e-12, atol=1e-12)


def test_the_unweighted_mean_is_not():
    local, whole = local_gradients([3, 5])
    assert np.max(np.abs(unweighted_mean(local) - whole)) > 1e-3


def test_equal_counts_need_no_weights():
    local, whole = local_gradients([4, 4])
    np.testing.assert_allclose(unweighted_mean(local), whole, rtol=1e-12, atol=1e-12)


def test_the_gradient_is_the_slope_of_the_loss():
    """Against differences of the loss itself."""
    features, weights, targets = drawn(7)
    step = 1e-6

    def loss(at: np.ndarray) -> float:
        return float(np.mean((features @ at - targets) ** 2))

    slopes = [(loss(weights + step * unit) - loss(weights - step * unit)) / (2 * step) for unit in np.eye(3)]
    np.testing.assert_allclose(mean_gradient(features, weights, targets), slopes, atol=1e-7)


@pytest.mark.parametrize("array", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_shape_dtype_and_library_are_kept(array):
    means = [array(np.array(values, np.float32)) for values in ([1, 2], [5, 10])]
    joined = count_weighted_mean(means, [3, 1])
    assert isinstance(joined, type(means[0])) and joined.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(joined), [2, 4])
    gradient = mean_gradient(*(array(each.astype(np.float32)) for each in drawn(4)))
    assert isinstance(gradient, type(means[0])) and gradient.dtype == np.float32 and gradient.shape == (3,)


@pytest.mark.parametrize("counts", [[3], [3, 5, 1], [3, 0], [3, -1], [3, 2.5], [3, True]])
def test_counts_that_do_not_fit_are_refused(counts: list):
    with pytest.raises(ValueError, match="count"):
        count_weighted_mean([np.ones(2), np.ones(2)], counts)


def test_shards_that_do_not_fit_are_refused():
    for call in (unweighted_mean, lambda means: count_weighted_mean(means, [1] * len(means))):
        with pytest.raises(ValueError, match="at least one shard"):
            call([])
        with pytest.raises(ValueError, match=r"\(1,\).*\(2,\)"):
            call([np.ones(2), np.ones(1)])


@pytest.mark.parametrize(
    "shapes",
    [((4, 3), (2,), (4,)), ((4, 3), (3,), (5,)), ((4,), (4,), (4,)), ((4, 3), (3, 1), (4,)), ((0, 3), (3,), (0,))],
)
def test_a_gradient_of_what_does_not_fit_is_refused(shapes: tuple):
    with pytest.raises(ValueError, match=r"needed|needs"):
        mean_gradient(*(np.ones(shape) for shape in shapes))
