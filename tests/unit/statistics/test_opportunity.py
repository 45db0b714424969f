"""The arithmetic of opportunity: recorded values, its limits, and what it refuses."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_audit.statistics import conditional_speedup, speedup_limit

SHARES = st.floats(0, 1)
SPEEDUPS = st.floats(1e-6, 1e6)


def test_the_recorded_values():
    assert conditional_speedup(0.3, 2.0) == 1.1764705882352942
    assert speedup_limit(0.3) == 1.4285714285714286


@given(SHARES, SPEEDUPS)
def test_time_adds_up(share: float, local_speedup: float):
    """A step of one second: the part takes share / s, the rest what it took."""
    time_s = (1 - share) + share / local_speedup
    assert conditional_speedup(share, local_speedup) == pytest.approx(1 / time_s)


@given(SHARES, SPEEDUPS)
def test_no_local_speedup_exceeds_the_limit(share: float, local_speedup: float):
    assert conditional_speedup(share, local_speedup) <= speedup_limit(share)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_part_that_costs_nothing_reaches_the_limit(share: float):
    assert conditional_speedup(share, math.inf) == speedup_limit(share)


def test_edges():
    assert conditional_speedup(0.0, 1000.0) == 1.0
    assert conditional_speedup(1.0, 4.0) == 4.0
    assert conditional_speedup(0.5, 0.5) < 1  # a slower part slows the step
    assert speedup_limit(0.0) == 1.0
    assert speedup_limit(1.0) == math.inf


@pytest.mark.parametrize("share", [-0.1, 1.1, 30, math.nan])
def test_a_share_outside_the_step_is_refused(share: float):
    for call in (lambda: conditional_speedup(share, 2.0), lambda: speedup_limit(share)):
        with pytest.raises(ValueError, match="share") as raised:
            call()
        assert repr(share) in str(raised.value)


@pytest.mark.parametrize("local_speedup", [0, 0.0, -2.0, math.nan])
def test_a_speedup_that_is_none_is_refused(local_speedup: float):
    with pytest.raises(ValueError, match="local_speedup") as raised:
        conditional_speedup(0.3, local_speedup)
    assert repr(local_speedup) in str(raised.value)
