"""Middles, percentiles and robust spreads against NumPy and against recorded values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_audit.statistics import clock_doubt, log_ratios, median, percentile_90, robust_cv
from kernel_audit.statistics.student import student_quantile, student_two_sided

SAMPLES = st.lists(st.floats(1e-9, 1e3), min_size=1, max_size=60)


@given(SAMPLES)
def test_as_numpy_computes_them(samples: list[float]):
    assert median(samples) == pytest.approx(np.median(samples))
    assert percentile_90(samples) == pytest.approx(np.percentile(samples, 90))


def test_the_90th_percentile_is_not_the_maximum():
    assert percentile_90([1.0] * 95 + [50.0] * 5) == 1.0


@given(SAMPLES, st.floats(1e-3, 1e3))
def test_a_robust_cv_has_no_unit(samples: list[float], factor: float):
    assert robust_cv([each * factor for each in samples]) == pytest.approx(robust_cv(samples), abs=1e-9)


def test_a_robust_cv_is_the_standard_deviation_of_normal_noise_whatever_a_few_calls_do():
    samples = np.random.default_rng(0).normal(1.0, 0.1, 20_000)
    samples[:1000] = 50.0
    assert robust_cv(samples.tolist()) == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("call", [median, percentile_90, robust_cv])
def test_no_samples_have_no_summary(call):
    with pytest.raises(ValueError, match="no samples"):
        call([])


def test_student_as_in_the_tables():
    """Two-sided quantiles printed in every table of the distribution."""
    expected = {(0.99, 1): 63.657, (0.99, 7): 3.499, (0.99, 9): 3.250, (0.95, 30): 2.042, (0.5, 2): 0.816}
    for (level, freedom), value in expected.items():
        assert student_quantile(level, freedom) == pytest.approx(value, abs=6e-4)
        assert student_two_sided(student_quantile(level, freedom), freedom) == pytest.approx(level, abs=1e-12)


def test_a_call_that_a_coarse_clock_calls_nothing_took_half_a_step():
    assert log_ratios([0.0, 2.0], [1.0, 1.0], 1.0) == pytest.approx([math.log(0.5), math.log(2)])
    with pytest.raises(ValueError, match="both sides"):
        log_ratios([1.0], [1.0, 2.0])


def test_what_a_clock_cannot_tell():
    assert clock_doubt((1.0, 1.0), 0.0) == 0.0
    assert clock_doubt((1.0, 1.0), 0.01) == pytest.approx(0.02, rel=0.02)
    assert clock_doubt((1.0, 0.01), 0.01) == math.inf
