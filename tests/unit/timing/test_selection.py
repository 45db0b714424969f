"""The best of several: chosen on pilots, confirmed on fresh samples."""

from __future__ import annotations

import msgspec
import pytest

from kernel_audit.records import CANNOT_TELL, FASTER, NO_DIFFERENCE, Session, SessionPlan
from kernel_audit.statistics import session_verdict
from kernel_audit.timing import Noise, plan_session, select_and_confirm, simulate_session

TRUE_RATIOS = {"a": 1.0, "b": 0.8, "c": 0.9, "strong": 0.85, "weak": 1.3, "plain": 1.0}
NOISE = Noise("n", independent=0.1, spread=0.005)
PILOT = plan_session(seed=1, input_sets=1, pairs=60, processes=2)
PLAN = plan_session(seed=2, input_sets=1, pairs=300, processes=8)


def run(candidate: str, baseline: str, plan: SessionPlan) -> Session:
    salt = sum(map(ord, candidate + baseline))
    ratio = TRUE_RATIOS.get(candidate, 1.0) / TRUE_RATIOS.get(baseline, 1.0)
    return simulate_session(NOISE, msgspec.structs.replace(plan, seed=1000 * plan.seed + salt), ratio=ratio)


def test_the_best_of_each_side_meet_in_a_session_of_their_own():
    found = select_and_confirm(["a", "b", "c"], ["plain", "weak", "strong"], run, PILOT, PLAN)
    assert [each.chosen for each in found.choices] == ["b", "strong"]
    assert [len(each.pilots) for each in found.choices] == [3, 3] and len(found.pilots) == 5
    assert found.session.plan.pairs == 304
    verdict = session_verdict(found.session)
    assert verdict.ratio.low < 0.8 / 0.85 < verdict.ratio.high


def test_one_program_a_side_needs_no_pilot():
    found = select_and_confirm(["b"], ["plain"], run, PILOT, PLAN)
    assert found.pilots == () and [each.pilots for each in found.choices] == [[], []]
    assert session_verdict(found.session).verdict == FASTER


def test_choosing_among_equals_buys_no_luck():
    """The pilots' least ratio is too small; the session is not."""
    equals = [f"equal {index}" for index in range(12)]
    found = select_and_confirm(equals, ["plain"], run, PILOT, PLAN)
    assert min(each.ratio for each in found.choices[0].pilots) < 0.98
    assert session_verdict(found.session).verdict in (NO_DIFFERENCE, CANNOT_TELL)


def test_a_pilot_is_no_part_of_the_session():
    with pytest.raises(ValueError, match="another seed"):
        select_and_confirm(["a"], ["plain"], run, PLAN, PLAN)
    with pytest.raises(ValueError, match="both sides"):
        select_and_confirm([], ["plain"], run, PILOT, PLAN)
