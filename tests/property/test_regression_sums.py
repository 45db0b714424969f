"""What holds of the regression sums whatever the operands: parts of the rows add up, rows of zeros add nothing."""

from __future__ import annotations

import functools

import jax
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_audit.kernels.regression_gradient import FORMS, regression_gradient

# One size, as each is compiled once for each form; it leaves a tail in every block.
ROWS, COLUMNS = 257, 5
SEED = st.integers(0, 1 << 16)
FORM = st.sampled_from(list(FORMS))


def drawn(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Small whole numbers: their sums are exact in float32, whatever the order."""
    rng = np.random.default_rng(seed)
    X, w, y = (rng.integers(-3, 4, size).astype(np.float32) for size in ((n, d), d, n))
    return X, w, y


@functools.cache
def compiled(form: str):
    return jax.jit(functools.partial(regression_gradient, form=form))


def sums(X: np.ndarray, w: np.ndarray, y: np.ndarray, form: str) -> np.ndarray:
    squares, gradient = compiled(form)(X, w, y)
    return np.append(np.asarray(gradient), squares)


@settings(max_examples=16, deadline=None)
@given(FORM, SEED)
def test_sums_of_parts_are_the_sums_of_the_whole(form, seed):
    X, w, y = drawn(ROWS, COLUMNS, seed)
    cut = 128
    parts = sums(X[:cut], w, y[:cut], form) + sums(X[cut:], w, y[cut:], form)
    np.testing.assert_array_equal(sums(X, w, y, form), parts)


@settings(max_examples=8, deadline=None)
@given(FORM, SEED)
def test_rows_of_zeros_add_nothing(form, seed):
    X, w, y = drawn(ROWS, COLUMNS, seed)
    padded = np.pad(X, ((0, 127), (0, 0))), w, np.pad(y, (0, 127))
    np.testing.assert_array_equal(sums(X, w, y, form), sums(*padded, form))


@settings(max_examples=8, deadline=None)
@given(SEED)
def test_both_forms_give_the_exact_sums_of_whole_numbers(seed):
    X, w, y = drawn(ROWS, COLUMNS, seed)
    residuals = X.astype(np.int64) @ w.astype(np.int64) - y.astype(np.int64)
    right = np.append(2 * residuals @ X.astype(np.int64), residuals @ residuals)
    for form in FORMS:
        np.testing.assert_array_equal(sums(X, w, y, form), right)
