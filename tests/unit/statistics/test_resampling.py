"""Intervals from resampled steps: the same each time, around the estimate, and of the right width."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_audit.statistics import difference_interval, median, needed_speedup, share_interval

TIMES = st.lists(st.floats(1, 1e9), min_size=1, max_size=30)


def test_the_median():
    assert median([3, 1, 2]) == 2.0 and median([4, 1, 3, 2]) == 2.5
    with pytest.raises(ValueError, match="no samples"):
        median([])


@settings(max_examples=15)
@given(TIMES, st.floats(0, 1))
def test_a_constant_share_has_an_interval_of_no_width(walls, share):
    found = share_interval([share * each for each in walls], walls)
    assert found.low <= found.value <= found.high
    assert found.high - found.low <= 1e-9 and found.value == pytest.approx(share)


@settings(max_examples=15)
@given(TIMES, st.randoms(use_true_random=False))
def test_the_shares_of_all_parts_add_up(walls, rng):
    cut = [rng.random() for _ in walls]
    left = share_interval([each * part for each, part in zip(walls, cut, strict=True)], walls)
    right = share_interval([each * (1 - part) for each, part in zip(walls, cut, strict=True)], walls)
    assert left.value + right.value == pytest.approx(1)
    assert left.low <= left.value <= left.high


def test_an_interval_is_the_same_each_time_and_narrows_with_steps():
    rng = random.Random(1)
    walls = [100 + rng.gauss(0, 10) for _ in range(400)]
    part = [30 + rng.gauss(0, 5) for _ in range(400)]
    wide, narrow = share_interval(part[:20], walls[:20]), share_interval(part, walls)
    assert wide == share_interval(part[:20], walls[:20])
    assert narrow.low < 0.3 < narrow.high
    assert narrow.high - narrow.low < (wide.high - wide.low) / 2


def test_the_interval_holds_the_truth_about_as_often_as_it_says():
    rng = random.Random(2)
    held = 0
    for _ in range(40):
        walls = [100.0] * 24
        found = share_interval([rng.gauss(30, 6) for _ in walls], walls)
        held += found.low <= 0.3 <= found.high
    assert 33 <= held <= 40


def test_a_difference_of_pairs():
    found = difference_interval([10, 12, 11, 13] * 5, [9, 11, 10, 12] * 5)
    assert (found.low, found.value, found.high) == (1, 1, 1)
    with pytest.raises(ValueError, match="pairs"):
        difference_interval([1], [])


@pytest.mark.parametrize(("part", "whole"), [([], []), ([1], [1, 2]), ([1], [0])])
def test_what_is_no_share_of_steps_is_refused(part, whole):
    with pytest.raises(ValueError, match="step"):
        share_interval(part, whole)


def test_what_a_worth_needs():
    assert needed_speedup(0.3, 0.1) == pytest.approx(1.5)
    assert needed_speedup(0.05, 0.1) == float("inf")
    assert needed_speedup(0.1, 0.1) == float("inf")
    assert needed_speedup(0.0, 0.0) == 1.0
    with pytest.raises(ValueError, match="margin"):
        needed_speedup(0.3, 1.0)


@given(st.floats(0.01, 1), st.floats(0.001, 0.99))
def test_what_is_needed_gives_the_margin(share, margin):
    needed = needed_speedup(share, margin)
    if needed != float("inf"):
        assert (1 - share) + share / needed == pytest.approx(1 - margin)
