"""From intervals to verdicts: each rule with the case just beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_audit.records import CANNOT_TELL, FASTER, NO_DIFFERENCE, SLOWER
from kernel_audit.statistics import RatioInterval, Soundness, judge

SOUND = Soundness(processes=10, pairs=600)
CONTROL = RatioInterval(0.99, 1.0, 1.01)
MARGIN = 0.05


def said(low: float, high: float, *, control=CONTROL, **changed) -> tuple[str, tuple[str, ...]]:
    soundness = Soundness(**{"processes": 10, "pairs": 600, **changed})
    return judge(RatioInterval(low, (low + high) / 2, high), control, soundness, MARGIN)


@pytest.mark.parametrize(
    "low, high, verdict, reason",
    [
        (0.90, 0.99, FASTER, "interval-below-1"),
        (1.01, 1.10, SLOWER, "interval-above-1"),
        (0.90, 1.00, CANNOT_TELL, "interval-too-wide"),  # 1 itself lies inside
        (0.96, 1.04, NO_DIFFERENCE, "within-margin"),
        (0.96, 1.06, CANNOT_TELL, "interval-too-wide"),
        (0.999, 0.9999, FASTER, "interval-below-1"),  # far below the margin, and still a difference
    ],
)
def test_an_interval_and_its_verdict(low: float, high: float, verdict: str, reason: str):
    assert said(low, high) == (verdict, (reason,))


def test_a_session_whose_control_differs_tells_nothing():
    off = RatioInterval(1.01, 1.02, 1.03)
    assert said(0.90, 0.95, control=off) == (CANNOT_TELL, ("control-clear-of-1",))
    assert said(1.05, 1.10, control=off) == (CANNOT_TELL, ("control-clear-of-1",))
    assert said(0.97, 1.03, control=off) == (CANNOT_TELL, ("control-clear-of-1",))
    assert said(0.90, 1.20, control=off) == (CANNOT_TELL, ("control-clear-of-1",))
    assert said(0.5, 0.6, control=off, processes=2) == (CANNOT_TELL, ("too-few-processes", "control-clear-of-1"))


@pytest.mark.parametrize(
    "changed, reason",
    [
        ({"processes": 7}, "too-few-processes"),
        ({"pairs": 39}, "too-few-pairs"),
        ({"voided_share": 0.21}, "too-many-voided"),
        ({"doubt": 0.026}, "clock-too-coarse"),
        ({"direction_right": False}, "direction-control-failed"),
        ({"known_only": True}, "faster-on-known-operands"),
    ],
)
def test_what_keeps_a_session_from_being_faster(changed: dict, reason: str):
    assert said(0.5, 0.6) == (FASTER, ("interval-below-1",))
    assert said(0.5, 0.6, **changed) == (CANNOT_TELL, (reason,))


def test_all_reasons_are_said_at_once():
    assert said(0.5, 0.6, processes=2, pairs=3)[1] == ("too-few-processes", "too-few-pairs")


def test_the_cost_of_readings_is_no_sign_of_equality_and_none_against_a_difference():
    assert said(0.97, 1.03, overhead=0.02) == (CANNOT_TELL, ("overhead-dominated",))
    assert said(0.5, 0.6, overhead=0.02)[0] == FASTER


def test_a_margin_is_above_0():
    with pytest.raises(ValueError, match="margin"):
        judge(CONTROL, CONTROL, SOUND, 0.0)


RATIOS = st.floats(0.01, 100.0)


@given(RATIOS, RATIOS, RATIOS, RATIOS)
def test_exchanged_sides_exchange_the_verdict(a: float, b: float, c: float, d: float):
    (low, high), (first, last) = sorted((a, b)), sorted((c, d))
    here = judge(RatioInterval(low, low, high), RatioInterval(first, first, last), SOUND, MARGIN)
    there = judge(
        RatioInterval(1 / high, 1 / high, 1 / low), RatioInterval(1 / last, 1 / last, 1 / first), SOUND, MARGIN
    )
    exchanged = {FASTER: SLOWER, SLOWER: FASTER}
    assert there[0] == exchanged.get(here[0], here[0])


@given(RATIOS, RATIOS, st.floats(1.0, 3.0))
def test_a_wider_interval_never_gives_a_stronger_verdict(a: float, b: float, factor: float):
    low, high = sorted((a, b))
    narrow = judge(RatioInterval(low, low, high), CONTROL, SOUND, MARGIN)[0]
    wide = judge(RatioInterval(low / factor, low, high * factor), CONTROL, SOUND, MARGIN)[0]
    assert wide in (narrow, CANNOT_TELL) or (narrow in (FASTER, SLOWER) and wide == NO_DIFFERENCE)
