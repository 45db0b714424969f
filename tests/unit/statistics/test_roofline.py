"""The arithmetic of the roofline: which ceiling is nearer, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_audit.records import Ceiling
from kernel_audit.statistics import COPY, PRODUCT, attainable_per_s, balance, intensity, largest_ceiling

RATES = st.floats(1e3, 1e15)


def test_recorded_values():
    assert intensity(6e9, 3_000_000_000) == 2.0
    assert attainable_per_s(2.0, 4e12, 60e12) == 8e12
    assert attainable_per_s(100.0, 4e12, 60e12) == 60e12
    assert balance(4e12, 60e12) == 15.0


@given(RATES, RATES, st.floats(1e-3, 1e6))
def test_below_the_balance_the_copy_is_nearer(copy_per_s: float, product_per_s: float, per_byte: float):
    reached = attainable_per_s(per_byte, copy_per_s, product_per_s)
    assert reached <= product_per_s
    assert reached == pytest.approx(copy_per_s * min(per_byte, balance(copy_per_s, product_per_s)))


@pytest.mark.parametrize(("flops", "least_bytes"), [(0.0, 4), (-1.0, 4), (float("nan"), 4), (1.0, 0)])
def test_nothing_to_count_has_no_intensity(flops: float, least_bytes: int):
    with pytest.raises(ValueError, match="above 0"):
        intensity(flops, least_bytes)


def test_the_largest_ceiling_is_of_its_kind_and_dtype():
    found = [
        Ceiling(kind=kind, dtype=dtype, work=per_s, samples_s=[1.0], per_s=per_s)
        for kind, dtype, per_s in ((COPY, "float32", 1.0), (COPY, "bfloat16", 2.0), (PRODUCT, "float32", 5.0))
    ]
    assert largest_ceiling(found, COPY) == 2.0
    assert largest_ceiling(found, PRODUCT, "float32") == 5.0
    assert largest_ceiling(found, PRODUCT, "bfloat16") is None
