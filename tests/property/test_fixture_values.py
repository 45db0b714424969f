"""Each value family does what its name says, at any shape and seed."""

from __future__ import annotations

import hypothesis.extra.numpy as arrays
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_audit.contract.words import FAMILIES as NAMES
from kernel_audit.fixture import FAMILIES, permutation

SEEDS = st.integers(0, 2**64 - 1)
SHAPES = arrays.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=40)
TINY = np.float32(2.0**-126)

QUICK = settings(max_examples=30, deadline=None)


def drawn(family: str, seed: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Two operands, one after the other."""
    rng = np.random.default_rng(seed)
    first = FAMILIES[family](rng, shape, None)
    return first, FAMILIES[family](rng, shape, first)


def test_every_family_of_the_contract_can_be_drawn():
    assert tuple(FAMILIES) == NAMES


@pytest.mark.parametrize("family", NAMES)
@QUICK
@given(seed=SEEDS, shape=SHAPES)
def test_float32_of_the_shape_and_the_same_again(family, seed, shape):
    once, again = drawn(family, seed, shape), drawn(family, seed, shape)
    for left, right in zip(once, again, strict=True):
        assert left.dtype == np.float32 and left.shape == shape
        assert left.tobytes() == right.tobytes()


@pytest.mark.parametrize("family", sorted({*NAMES} - {"non-finite"}))
@QUICK
@given(seed=SEEDS, shape=SHAPES)
def test_only_one_family_holds_values_that_are_not_finite(family, seed, shape):
    assert all(np.isfinite(each).all() for each in drawn(family, seed, shape))


def test_values_that_are_not_finite_are_all_three_beside_finite_ones():
    values = drawn("non-finite", 7, (40, 40))[0]
    assert np.isnan(values).any() and np.isposinf(values).any() and np.isneginf(values).any()
    assert np.isfinite(values).mean() > 0.5


@QUICK
@given(seed=SEEDS, shape=SHAPES)
def test_integers_name_their_place(seed, shape):
    values = drawn("integers", seed, shape)[0]
    assert len(np.unique(values)) == values.size
    assert np.array_equal(values, np.round(values))
    assert abs(values).max() <= values.size // 2


@QUICK
@given(seed=SEEDS, shape=SHAPES)
def test_zeros_of_both_signs(seed, shape):
    values = drawn("signed-zeros", seed, shape)[0]
    assert set(np.unique(values)) <= {-1.0, 0.0, 1.0}


def test_zeros_of_both_signs_occur():
    values = drawn("signed-zeros", 3, (20, 20))[0]
    zeros = values == 0
    assert np.signbit(values[zeros]).any() and (~np.signbit(values[zeros])).any()


@pytest.mark.parametrize(("dtype", "sum_of"), [("bfloat16", "x + y"), ("float32", "x + y"), ("bfloat16", "2x + y")])
def test_ties_lie_half_way_between_neighbours(dtype, sum_of):
    x, y = (each.astype(np.float64) for each in drawn("ties", 11, (64, 64)))
    exact = (2 * x if sum_of == "2x + y" else x) + y
    rounded = exact.astype(np.dtype(dtype)).astype(np.float64)
    spacing = 2.0 ** (np.floor(np.log2(np.abs(exact))) - (7 if dtype == "bfloat16" else 23))
    assert (np.abs(exact - rounded) == spacing / 2).sum() > 64


@QUICK
@given(seed=SEEDS, shape=SHAPES)
def test_cancellation_leaves_nothing_or_the_last_bit(seed, shape):
    x, y = (each.astype(np.float64) for each in drawn("cancellation", seed, shape))
    left = np.min([np.abs(factor * x + y) for factor in (0.5, 1.0, 2.0)], axis=0)
    assert (left <= np.abs(y) * 2.0**-22).all()


BIASES = [(32, 256), (256,), (1, 256), (32, 1), (1,), ()]


def beside_a_matrix(family: str, seed: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """A matrix of 32 x 256, and then an operand that is repeated over it."""
    rng = np.random.default_rng(seed)
    first = FAMILIES[family](rng, BIASES[0], None)
    return first, FAMILIES[family](rng, shape, first)


@pytest.mark.parametrize("shape", BIASES[1:], ids=str)
@QUICK
@given(seed=SEEDS)
def test_a_bias_cancels_an_element_that_it_meets(shape, seed):
    x, bias = (each.astype(np.float64) for each in beside_a_matrix("cancellation", seed, shape))
    assert bias.shape == shape
    left = np.abs(x + bias) <= np.abs(bias) * 2.0**-6
    met = tuple(axis for axis in range(2) if (1, 1, *shape)[axis - 2] == 1)
    assert left.any(axis=met).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_sums_with_a_bias_lie_on_both_sides_of_zero_and_on_it(dtype):
    x, bias = (each.astype(dtype).astype(np.float64) for each in beside_a_matrix("cancellation", 5, (256,)))
    sums = x + bias
    close = np.abs(bias) * 2.0**-6
    assert (sums == 0).sum() > 64
    assert ((sums > 0) & (sums <= close)).sum() > 8
    assert ((sums < 0) & (sums >= -close)).sum() > 8


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_sums_with_a_bias_lie_half_way_between_neighbours(dtype):
    exact = np.add(*(each.astype(np.float64) for each in beside_a_matrix("ties", 11, (256,))))
    rounded = exact.astype(np.dtype(dtype)).astype(np.float64)
    spacing = 2.0 ** (np.floor(np.log2(np.abs(exact))) - (7 if dtype == "bfloat16" else 23))
    assert (np.abs(exact - rounded) == spacing / 2).sum() > 256


@QUICK
@given(seed=SEEDS, shape=SHAPES)
def test_large_values_stay_below_overflow_when_three_are_added(seed, shape):
    x, y = drawn("large", seed, shape)
    for dtype in (np.float32, ml_dtypes.bfloat16):
        assert np.isfinite((2 * x.astype(dtype) + y.astype(dtype)).astype(np.float32)).all()


@QUICK
@given(seed=SEEDS, shape=SHAPES)
def test_doubling_above_the_limit_overflows(seed, shape):
    x, _ = drawn("overflow", seed, shape)
    with np.errstate(over="ignore"):
        assert np.isinf(x + x + x).all()


def test_subnormal_operands_and_normal_ones_beside_them():
    x, y = drawn("subnormals", 5, (32, 32))
    for values in (np.abs(x), np.abs(y), np.abs(x + y)):
        assert ((values > 0) & (values < TINY)).any() and (values >= TINY).any()


@QUICK
@given(seed=SEEDS, size=st.integers(2, 200))
def test_a_permutation_moves_rows_and_loses_none(seed, size):
    order = permutation(size, seed)
    assert sorted(order) == list(range(size))
    assert not np.array_equal(order, np.arange(size))
    assert np.array_equal(order, permutation(size, seed))
