"""Whole sessions on a simulated clock: what is kept, what is drawn beforehand, and what the record gives again."""

from __future__ import annotations

import dataclasses
from collections import Counter

import msgspec
import pytest

from kernel_audit.records import (
    CANNOT_TELL,
    FASTER,
    REFUSED,
    SLOWER,
    OutputCheck,
    Session,
    TimedProcess,
    decode,
    encode,
)
from kernel_audit.statistics import recomputed_differences, session_verdict
from kernel_audit.timing import Noise, plan_session, process_seed, process_steps, simulate_session

NOISE = Noise("quiet", independent=0.05, spread=0.005)
PLAN = plan_session(seed=3, input_sets=4, pairs=200, processes=8)


@pytest.fixture(scope="module")
def session() -> Session:
    return simulate_session(NOISE, PLAN, ratio=0.8)


def test_every_sample_is_kept(session: Session):
    assert len(session.processes) == 8
    for process in session.processes:
        for columns, count in ((process.comparison, 25), (process.control, 25), (process.direction, 4)):
            assert {len(getattr(columns, name)) for name in ("order", "inputs", "left_s", "right_s", "voided")} == {
                count
            }
        assert {role: len(samples) for role, samples in process.warm_up_s.items()} == {
            "candidate": 5,
            "baseline": 5,
            "twin": 5,
            "doubled": 5,
        }


def test_a_true_gain_is_found(session: Session):
    verdict = session_verdict(session)
    assert (verdict.verdict, verdict.reasons) == (FASTER, ["interval-below-1"])
    assert verdict.ratio.low < 0.8 < verdict.ratio.high
    assert verdict.control.low < 1 < verdict.control.high
    assert [each.role for each in verdict.sides] == ["candidate", "baseline"]
    assert verdict.pairs_needed is None


def test_the_same_record_gives_the_same_verdict_after_it_was_written_and_read(session: Session):
    again = decode(encode(session), Session, where="a session")
    assert again == session
    assert session_verdict(again) == session_verdict(session)


def test_a_stored_verdict_is_that_of_its_samples(session: Session):
    verdict = session_verdict(session)
    assert recomputed_differences(verdict, session) == []
    for altered, field in (
        (msgspec.structs.replace(verdict, pairs=verdict.pairs + 1), "pairs"),
        (msgspec.structs.replace(verdict, ratio=msgspec.structs.replace(verdict.ratio, low=0.7)), "ratio.low"),
        (msgspec.structs.replace(verdict, verdict=SLOWER), "verdict"),
    ):
        (said,) = recomputed_differences(altered, session)
        assert said.startswith(f"{field}: ")


@pytest.mark.parametrize("kind, column", [("comparison", "left_s"), ("comparison", "right_s"), ("control", "left_s")])
def test_one_altered_sample_is_seen_by_who_recomputes(session: Session, kind: str, column: str):
    """Whether it moves an interval or not."""
    first = session.processes[0]
    columns = getattr(first, kind)
    samples = [each * (1 + 1e-12) if index == 0 else each for index, each in enumerate(getattr(columns, column))]
    changed = msgspec.structs.replace(first, **{kind: msgspec.structs.replace(columns, **{column: samples})})
    altered = msgspec.structs.replace(session, processes=[changed, *session.processes[1:]])
    assert recomputed_differences(session_verdict(session), altered)


def test_a_simulated_session_claims_nothing(session: Session):
    assert (session.provenance, session.scope.claims) == ("simulated", "method-only")


def test_the_same_seed_gives_the_same_session_and_another_another():
    assert simulate_session(NOISE, PLAN) == simulate_session(NOISE, PLAN)
    other = msgspec.structs.replace(PLAN, seed=4)
    assert simulate_session(NOISE, other).processes != simulate_session(NOISE, PLAN).processes


def test_voided_pairs_count_and_are_used_for_nothing(session: Session):
    """Times that would turn the verdict round, were they used."""
    processes = []
    for each in session.processes:
        columns = each.comparison
        count = len(columns.left_s)
        voided = ["busy-machine" if index < 8 else "" for index in range(count)]
        left = [9.9 if index < 8 else columns.left_s[index] for index in range(count)]
        comparison = msgspec.structs.replace(columns, voided=voided, left_s=left)
        processes.append(msgspec.structs.replace(each, comparison=comparison))
    verdict = session_verdict(msgspec.structs.replace(session, processes=processes))
    assert verdict.verdict == FASTER
    assert verdict.voided == {"busy-machine": 64}
    assert verdict.pairs == 200 - 64


def test_a_wrong_result_of_a_timed_call_refuses_every_time(session: Session):
    wrong = OutputCheck(role="candidate", how="", timed=25, checked=5, fresh=1, differing=1)
    changed = msgspec.structs.replace(session.processes[3], checks=[wrong])
    processes = [*session.processes[:3], changed, *session.processes[4:]]
    verdict = session_verdict(msgspec.structs.replace(session, processes=processes))
    assert (verdict.verdict, verdict.reasons) == (REFUSED, ["timed-output-differs"])
    assert verdict.ratio is None and verdict.sides == []


@pytest.mark.parametrize("role, reason", [("candidate", "below-floor"), ("baseline", "baseline-below-floor")])
def test_a_time_below_the_floor_is_refused(session: Session, role: str, reason: str):
    sides = [msgspec.structs.replace(each, floor_s=2e-3 if each.role == role else 1e-6) for each in session.sides]
    verdict = session_verdict(msgspec.structs.replace(session, sides=sides))
    assert (verdict.verdict, verdict.reasons) == (REFUSED, [reason])


def test_exchanged_columns_are_noticed(session: Session):
    processes = [
        msgspec.structs.replace(each, **{kind: _exchanged(getattr(each, kind)) for kind in ("comparison", "direction")})
        for each in session.processes
    ]
    verdict = session_verdict(msgspec.structs.replace(session, processes=processes))
    assert (verdict.verdict, verdict.reasons) == (CANNOT_TELL, ["direction-control-failed"])


def _exchanged(columns):
    return msgspec.structs.replace(columns, left_s=columns.right_s, right_s=columns.left_s)


def test_a_wide_session_names_the_pairs_that_would_tell():
    plan = plan_session(seed=5, input_sets=1, pairs=300)
    verdict = session_verdict(simulate_session(Noise("wide", independent=0.3), plan, ratio=1.05))
    assert verdict.verdict == CANNOT_TELL
    assert 2000 < verdict.pairs_needed < 6000


def test_less_than_two_processes_tell_nothing_and_do_not_fail():
    session = simulate_session(NOISE, PLAN)
    alone = msgspec.structs.replace(session, processes=session.processes[:1])
    assert session_verdict(alone).reasons == ["too-few-pairs"]
    assert session_verdict(msgspec.structs.replace(session, processes=[])).verdict == CANNOT_TELL


def test_a_coarse_clock_that_shows_nothing_but_zeros_tells_nothing():
    coarse = dataclasses.replace(NOISE, step_s=0.05)
    verdict = session_verdict(simulate_session(coarse, PLAN, ratio=0.5))
    assert (verdict.verdict, verdict.reasons) == (CANNOT_TELL, ["clock-too-coarse"])
    assert verdict.ratio.high is None


def test_a_large_difference_is_found_with_a_coarse_clock():
    coarse = dataclasses.replace(NOISE, step_s=1e-5)
    assert session_verdict(simulate_session(coarse, PLAN, ratio=2.0)).verdict == SLOWER


def test_the_steps_of_a_process_are_drawn_before_it_runs():
    steps = process_steps(PLAN, process_seed(PLAN, 0))
    assert steps == process_steps(PLAN, process_seed(PLAN, 0))
    assert Counter(each.kind for each in steps) == {"comparison": 25, "control": 25, "direction": 4}
    assert 10 < sum(each.order for each in steps) < 44
    assert {each.inputs for each in steps if each.inputs >= 0} == {0, 1, 2, 3}
    fresh = [each.inputs for each in steps if each.inputs < 0]
    assert len(set(fresh)) == len(fresh) > 0
    assert all(each.checked for each in steps if each.inputs < 0)


def test_a_plan_takes_its_pairs_from_the_noise_of_the_pilot_alone():
    from kernel_audit.timing import pilot_logs

    sizes = []
    for independent in (0.02, 0.1, 0.3):
        pilot = simulate_session(dataclasses.replace(NOISE, independent=independent), PLAN, ratio=0.1)
        logs = pilot_logs(pilot.processes, pilot.clock.step_s)
        sizes.append(plan_session(seed=1, input_sets=1, pilot=logs).pairs)
    assert sizes[0] == 300 < sizes[1] < sizes[2]


def test_a_plan_needs_a_pilot_or_a_number_and_five_warm_ups():
    with pytest.raises(ValueError, match="pilot"):
        plan_session(seed=1, input_sets=1)
    with pytest.raises(ValueError, match="warm-ups"):
        plan_session(seed=1, input_sets=1, pairs=100, warm_ups=4)


UNCHECKED = {
    "no checks": lambda checks: [],
    "none of the candidate": lambda checks: [each for each in checks if each.role != "candidate"],
    "none of the baseline": lambda checks: [each for each in checks if each.role != "baseline"],
    "none checked": lambda checks: [msgspec.structs.replace(each, checked=0, fresh=0) for each in checks],
    "none fresh": lambda checks: [msgspec.structs.replace(each, fresh=0) for each in checks],
}


@pytest.mark.parametrize("what", UNCHECKED)
def test_times_of_calls_whose_results_nobody_judged_cannot_tell(session: Session, what: str):
    first, *rest = session.processes
    process = msgspec.structs.replace(first, checks=UNCHECKED[what](first.checks))
    verdict = session_verdict(msgspec.structs.replace(session, processes=[process, *rest]))
    assert (verdict.verdict, verdict.reasons, verdict.ratio) == (CANNOT_TELL, ["outputs-unchecked"], None)
    plain = msgspec.structs.replace(session.plan, fresh_every=0)
    if what == "none fresh":
        known = msgspec.structs.replace(session, plan=plain, processes=[process, *rest])
        assert session_verdict(known).verdict == FASTER


@pytest.mark.parametrize(("fresh", "told"), [(0.98, True), (0.9, True), (0.55, False)])
def test_a_gain_on_operands_that_were_shown_before_must_be_there_on_fresh_ones(
    session: Session, fresh: float, told: bool
):
    def timed(process: TimedProcess) -> TimedProcess:
        columns = process.comparison
        left = [
            right * (fresh if index < 0 else 0.5) for right, index in zip(columns.right_s, columns.inputs, strict=True)
        ]
        return msgspec.structs.replace(process, comparison=msgspec.structs.replace(columns, left_s=left))

    stored = msgspec.structs.replace(session, processes=[timed(each) for each in session.processes])
    assert ("faster-on-known-operands" in session_verdict(stored).reasons) is told
