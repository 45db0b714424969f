"""The spacing of a float dtype against its neighbouring representable values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_audit.oracle import unit_in_last_place

NARROW = ("bfloat16", "float16", "float8_e4m3fn", "float8_e5m2")


def finite_values(dtype: str) -> np.ndarray:
    """Every finite value of a narrow dtype from zero up, in float64."""
    width = np.dtype(dtype).itemsize * 8
    bits = np.arange(1 << (width - 1), dtype=np.dtype(f"u{width // 8}"))
    with np.errstate(invalid="ignore"):
        values = bits.view(np.dtype(dtype)).astype(np.float64)
    return values[np.isfinite(values)]


@pytest.mark.parametrize("dtype", NARROW)
def test_every_value_of_a_narrow_dtype(dtype):
    values = finite_values(dtype)
    assert np.array_equal(unit_in_last_place(values[:-1], dtype), np.diff(values))
    assert np.array_equal(unit_in_last_place(-values, dtype), unit_in_last_place(values, dtype))


@pytest.mark.parametrize("dtype", NARROW)
def test_the_largest_value_and_what_is_not_finite_have_the_largest_spacing(dtype):
    values = finite_values(dtype)
    largest = values[-1] - values[-2]
    odd = np.array([values[-1], np.inf, -np.inf, np.nan])
    assert np.array_equal(unit_in_last_place(odd, dtype), np.full(4, largest))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@settings(max_examples=200, deadline=None)
@given(value=st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_neighbours_of_a_wide_dtype(dtype, value):
    kind = np.dtype(dtype).type
    here = kind(abs(value))
    with np.errstate(over="ignore"):
        neighbour = np.nextafter(here, kind(np.inf))
    if np.isfinite(neighbour):
        assert unit_in_last_place(np.array([value]), dtype)[0] == float(neighbour) - float(here)


@pytest.mark.parametrize("dtype", [*NARROW, "float32"])
@settings(max_examples=100, deadline=None)
@given(value=st.floats(allow_nan=False, allow_infinity=False, width=64))
def test_rounding_moves_a_value_by_half_a_unit_at_most(dtype, value):
    with np.errstate(over="ignore"):
        rounded = float(np.float64(value).astype(np.dtype(dtype)))
    if np.isfinite(rounded) and abs(value) <= float(ml_dtypes.finfo(np.dtype(dtype)).max):
        assert abs(rounded - value) <= unit_in_last_place(np.array([value]), dtype)[0] / 2
