"""The step's ratio from the kernel's: recorded values, the speed-up's inverse, losses, and what is not comparable."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_audit.statistics import (
    AGREES,
    LESS,
    MORE,
    RatioInterval,
    as_interval,
    beside_estimate,
    conditional_speedup,
    step_estimate,
    step_ratio,
)

GAIN = RatioInterval(0.4, 0.5, 0.6)


def test_recorded_values():
    found = step_estimate(GAIN, alone_s=1e-3, step_s=4e-3)
    assert found is not None and found.share == 0.25
    assert (found.ratio.low, found.ratio.ratio, found.ratio.high) == pytest.approx((0.85, 0.875, 0.9))


def test_a_loss_makes_the_step_longer():
    found = step_estimate(RatioInterval(1.9, 2.0, 2.1), alone_s=1.0, step_s=2.0)
    assert found is not None
    assert (found.ratio.low, found.ratio.ratio, found.ratio.high) == pytest.approx((1.45, 1.5, 1.55))


@given(st.floats(0, 1), st.floats(1e-6, 1e6))
def test_the_inverse_is_the_conditional_speedup(share: float, local_ratio: float):
    assert step_ratio(share, local_ratio) == pytest.approx(1 / conditional_speedup(share, 1 / local_ratio))


def test_a_kernel_that_takes_longer_alone_than_in_the_step_is_not_compared():
    assert step_estimate(GAIN, alone_s=1.0, step_s=0.999) is None
    whole = step_estimate(GAIN, alone_s=1.0, step_s=1.0)
    assert whole is not None and whole.ratio == GAIN


@pytest.mark.parametrize(("alone_s", "step_s"), [(0.0, 1.0), (1.0, 0.0), (math.nan, 1.0), (-1.0, 1.0)])
def test_without_times_there_is_no_estimate(alone_s: float, step_s: float):
    assert step_estimate(GAIN, alone_s, step_s) is None


def test_an_open_end_stays_open():
    found = step_estimate(as_interval(0.4, 0.5, None), alone_s=1.0, step_s=2.0)
    assert found is not None and found.ratio.high == math.inf
    assert step_ratio(0.0, math.inf) == 1.0


@pytest.mark.parametrize(
    ("observed", "says"),
    [
        (RatioInterval(0.86, 0.88, 0.95), AGREES),
        (RatioInterval(0.80, 0.84, 0.85), AGREES),  # one end in common
        (RatioInterval(0.70, 0.75, 0.80), MORE),
        (RatioInterval(0.91, 0.95, 0.99), LESS),
        (RatioInterval(0.10, 0.88, math.inf), AGREES),
    ],
)
def test_what_is_observed_beside_it(observed: RatioInterval, says: str):
    assert beside_estimate(observed, RatioInterval(0.85, 0.875, 0.90)) == says
