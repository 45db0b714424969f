"""The opportunity of a region with its uncertainty."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_audit.statistics import opportunity


def test_equal_steps_have_no_uncertainty():
    found = opportunity([0.3] * 10, [1.0] * 10, 2.0, 0)
    assert found.share == pytest.approx((0.3, 0.3, 0.3))
    assert found.gain[1] == pytest.approx(1.1764705882352942)
    assert found.limit[1] == pytest.approx(1.4285714285714286)


def test_the_interval_holds_the_share_that_the_steps_were_drawn_with():
    draw, held = np.random.default_rng(0), 0
    for seed in range(100):
        step = draw.lognormal(0.0, 0.2, 30)
        found = opportunity(step * np.clip(draw.normal(0.4, 0.05, 30), 0, 1), step, 2.0, seed, replicates=500)
        held += found.share[0] <= 0.4 <= found.share[2]
    assert held >= 95


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(1e-6, 10)), min_size=2, max_size=20), st.floats(0.1, 10))
def test_the_value_lies_in_its_interval_and_the_same_seed_gives_the_same(steps: list, speedup: float):
    region, step = [share * whole for share, whole in steps], [whole for _, whole in steps]
    found = opportunity(region, step, speedup, 5, replicates=50)
    assert found == opportunity(region, step, speedup, 5, replicates=50)
    for low, value, high in (found.share, found.gain, found.limit):
        assert low <= value <= high
    assert found.limit[2] == math.inf or found.limit[2] >= 1


@pytest.mark.parametrize(
    "region, step", [([0.1], [1.0]), ([0.1, 0.1], [1.0]), ([1.1, 0.1], [1.0, 1.0]), ([-0.1, 0.1], [1.0, 1.0])]
)
def test_what_is_no_region_of_a_step(region: list[float], step: list[float]):
    with pytest.raises(ValueError):
        opportunity(region, step, 2.0, 0)
