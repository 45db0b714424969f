"""The two-level interval: its coverage by simulation, its symmetries, and the same numbers on every machine."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_audit.statistics import RatioNoise, pairs_needed, ratio_interval, ratio_noise
from kernel_audit.statistics.interval import two_level_medians


def drawn(draw: np.random.Generator, *, processes: int = 10, pairs: int = 60, within=0.14, between=0.01, shift=0.0):
    """Log ratios of one session."""
    own = draw.normal(shift, between, processes)
    return [middle + draw.normal(0.0, within, pairs) for middle in own]


def coverage(sessions: int, *, replicates: int = 1000, **noise) -> float:
    draw = np.random.default_rng(20)
    held = [ratio_interval(drawn(draw, **noise), seed, replicates=replicates).holds(1.0) for seed in range(sessions)]
    return float(np.mean(held))


def test_recorded_numbers():
    """The same on every NumPy: raw words of PCG64, whose sequence is kept."""
    processes = [np.array([-0.2, 0.0, 0.1, 0.3]) + index / 10 for index in range(4)]
    found = two_level_medians(processes, 7, 6)
    assert found == pytest.approx([0.35, 0.25, 0.1, 0.3, 0.1, 0.1], abs=1e-12)


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param({"pairs": 20}, id="pairs-dominate"),
        pytest.param({"between": 0.03, "pairs": 30}, id="processes-dominate"),
        pytest.param({"processes": 8, "between": 0.05, "within": 0.02, "pairs": 20}, id="eight-processes"),
    ],
)
def test_the_interval_covers_the_truth(noise: dict):
    assert coverage(200, replicates=500, **noise) >= 0.97


def test_the_bootstrap_alone_would_not():
    """Where processes differ more than pairs do, its interval is too narrow: what Student's t is there for."""
    draw, missed = np.random.default_rng(3), 0
    for seed in range(200):
        processes = drawn(draw, processes=8, between=0.05, within=0.02, pairs=20)
        low, high = np.quantile(two_level_medians(processes, seed, 600), [0.005, 0.995])
        missed += not low <= 0 <= high
    assert missed / 200 > 0.02


@pytest.mark.parametrize(
    "between",
    [
        pytest.param(each, marks=pytest.mark.slow if each == 0.02 else pytest.mark.exhaustive)
        for each in (0.0, 0.01, 0.02, 0.05)
    ],
)
def test_the_interval_covers_the_truth_in_99_of_100(between: float):
    assert coverage(2000, between=between, replicates=2000) >= 0.985


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 12), st.integers(1, 41), st.floats(0.0, 0.5))
def test_exchanged_sides_give_the_inverse(seed: int, processes: int, pairs: int, within: float):
    sample = drawn(np.random.default_rng(seed), processes=processes, pairs=pairs, within=within)
    here = ratio_interval(sample, seed, replicates=200)
    there = ratio_interval([-each for each in sample], seed, replicates=200)
    assert there.ratio == pytest.approx(1 / here.ratio, rel=1e-12)
    assert here.low <= here.ratio <= here.high
    assert here.low > 0 and not math.isnan(here.high)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 0.2))
def test_doubt_widens_both_ends(seed: int, doubt: float):
    sample = drawn(np.random.default_rng(seed))
    sure, unsure = (ratio_interval(sample, 1, doubt=each, replicates=100) for each in (0.0, doubt))
    assert unsure.low == pytest.approx(sure.low * math.exp(-doubt))
    assert unsure.high == pytest.approx(sure.high * math.exp(doubt))


def test_ties_give_a_point():
    interval = ratio_interval([np.full(50, math.log(1.1))] * 8, 0, replicates=50)
    assert (interval.low, interval.high) == pytest.approx((1.1, 1.1))


def test_processes_of_different_length_count_alike():
    draw = np.random.default_rng(5)
    sample = [draw.normal(0.0, 0.1, size) for size in (20, 30, 40, 60, 60, 60, 61, 90)]
    assert ratio_interval(sample, 0).holds(1.0)


@pytest.mark.parametrize("processes", [[], [np.zeros(5)], [np.zeros(5), np.zeros(0)]])
def test_less_than_two_processes_have_no_interval(processes: list):
    with pytest.raises(ValueError, match="two processes"):
        ratio_interval(processes, 0)


def test_the_noise_of_a_session_is_found_again():
    noise = ratio_noise(drawn(np.random.default_rng(1), processes=200, pairs=100, within=0.2, between=0.1))
    assert noise.within == pytest.approx(0.2, rel=0.05)
    assert noise.between == pytest.approx(0.1, rel=0.25)
    assert ratio_noise(drawn(np.random.default_rng(1), between=0.0)).between == 0.01


@given(st.floats(0.01, 0.5), st.floats(0.01, 0.03), st.floats(0.02, 0.2), st.integers(8, 20))
def test_more_noise_never_needs_fewer_pairs(within: float, between: float, margin: float, processes: int):
    few = pairs_needed(RatioNoise(within, between), margin, processes)
    many = pairs_needed(RatioNoise(within * 1.5, between), margin, processes)
    assert (few or 1e9) <= (many or 1e9)
    wider = pairs_needed(RatioNoise(within, between), margin * 1.5, processes)
    assert (wider or 1e9) <= (few or 1e9)


def test_the_numbers_of_the_promise():
    """A robust CV of 0.10 and 0.30 for a side, 1 % between processes: 600 pairs are enough, and about 4,000."""
    assert pairs_needed(RatioNoise(0.1 * 2**0.5, 0.01), 0.05, 10) <= 600
    assert 2500 <= pairs_needed(RatioNoise(0.3 * 2**0.5, 0.01), 0.05, 10) <= 4500
    assert pairs_needed(RatioNoise(0.1, 0.2), 0.05, 10) is None
