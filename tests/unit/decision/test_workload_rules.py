"""Whose fault a wrong step is, which of several explanations is told, and what becomes of the decision."""

from __future__ import annotations

import msgspec
import pytest
import workload_sample
from sample_evidence import agreeing
from sample_receipts import measured

from kernel_audit.decision import decide, exit_code, reasons
from kernel_audit.records import AWAIT, REVISE, Decision, HostCheck, StepRun, WorkloadRecord


def decided(record: WorkloadRecord) -> Decision:
    return decide(workload_sample.with_workload(agreeing().evidence, record))


def _wrong(*codes: str, partition: str = "data=2/3+5", **changes) -> StepRun:
    fields = {"side": "candidate", "outcome": "wrong", "codes": list(codes), "note": "update 1: loss off by 11.2%"}
    return workload_sample.run(**{**fields, **changes, "partition": partition})


def _codes(decision: Decision) -> list[str]:
    return [each.code for each in decision.findings if reasons()[each.code].effect in ("revise", "forbid")]


def test_a_right_step_makes_the_mathematics_acceptable():
    decision = decided(workload_sample.record())
    criterion = next(each for each in decision.review if each.name == "mathematics")
    assert decision.decision == AWAIT and criterion.verdict == "accept"
    assert "within 3.0e-07 of float64" in criterion.text


def test_the_candidate_is_revised_where_the_step_is_right_without_it():
    decision = decided(workload_sample.record(workload_sample.run(), _wrong("unweighted-means")))
    assert decision.decision == REVISE and _codes(decision) == ["unweighted-means"]
    assert "11.2%" in decision.findings[0].text
    assert decision.findings[0].records == ["step/candidate/float32/data=2/3+5"]


def test_a_step_that_is_wrong_with_a_baseline_is_the_audits_fault_alone():
    wrong = _wrong("missing-reduction", side="fused")
    decision = decided(workload_sample.record(wrong, _wrong("missing-reduction")))
    assert decision.decision is None and exit_code(decision) == 2
    assert _codes(decision) == ["workload-step-wrong"]
    assert decision.findings[0].text.startswith("missing-reduction: ")


def test_a_step_of_the_candidates_own_is_judged_whatever_the_audits_is():
    own = _wrong("sum-for-mean", step="candidate")
    decision = decided(workload_sample.record(workload_sample.run(), own))
    assert _codes(decision) == ["sum-for-mean"]
    assert decision.findings[0].records == ["step of candidate/candidate/float32/data=2/3+5"]


def test_the_explanation_that_most_partitions_share_is_told():
    runs = [
        _wrong("reduced-twice", "count-dropped"),
        _wrong("count-dropped", partition="data=8/13"),
        _wrong(partition="data=8/5"),
    ]
    decision = decided(workload_sample.record(workload_sample.run(), *runs))
    assert _codes(decision) == ["count-dropped"]


def test_a_step_without_an_explanation_is_wrong_all_the_same():
    assert _codes(decided(workload_sample.record(workload_sample.run(), _wrong()))) == ["step-wrong"]


@pytest.mark.parametrize(
    ("reference", "code", "decision"),
    [
        (HostCheck(independent=False, rule=""), "only-loss-checked", AWAIT),
        (HostCheck(independent=True, rule="", slope_error=0.1, right=False), "workload-reference-wrong", None),
    ],
)
def test_a_reference_that_is_not_there_or_contradicts_itself(reference: HostCheck, code: str, decision: str | None):
    found = decided(workload_sample.record(reference=reference))
    assert found.decision == decision and code in [each.code for each in found.findings]
    assert next(each for each in found.review if each.name == "mathematics").verdict == "revise"


@pytest.mark.parametrize(
    ("outcome", "code", "decision"),
    [
        ("wrong", "processes-differ", None),
        ("rank-lost", "processes-failed", AWAIT),
        ("stuck", "processes-failed", AWAIT),
    ],
)
def test_processes(outcome: str, code: str, decision: str | None):
    good = workload_sample.record().processes[0]
    found = decided(workload_sample.record(processes=[msgspec.structs.replace(good, outcome=outcome, cause=1)]))
    assert found.decision == decision and code in [each.code for each in found.findings]


def _mathematics(decision: Decision):
    return next(each for each in decision.review if each.name == "mathematics")


@pytest.mark.parametrize("side", ["candidate", "fused"])
@pytest.mark.parametrize("ending", ["gone", "not-run"])
def test_a_side_that_never_ran_in_the_step_leaves_the_mathematics_open(side: str, ending: str):
    left = [each for each in workload_sample.whole() if each.side != side]
    if ending == "not-run":
        left += [
            msgspec.structs.replace(each, outcome="not-run", errors=[])
            for each in workload_sample.whole()
            if each.side == side
        ]
    found = _mathematics(decided(workload_sample.record(*left)))
    assert found.verdict == "unresolved"
    assert found.text.startswith("the complete step has no right run with")


def test_one_planned_run_that_is_not_there_leaves_the_mathematics_open():
    found = _mathematics(decided(workload_sample.record(*workload_sample.whole()[:-1])))
    assert found.verdict == "unresolved"
    assert "1 planned runs" in found.text and "candidate/bfloat16" in found.text


@pytest.mark.parametrize("outcome", ["gone", "not-run", "died"])
def test_on_targets_a_planned_run_without_values_is_missing_evidence(outcome: str):
    def missing(record: WorkloadRecord) -> list[str]:
        decision = decide(workload_sample.with_workload(measured(), record))
        return [each.text for each in decision.findings if each.code == "evidence-missing"]

    runs = workload_sample.whole()
    last = msgspec.structs.replace(runs[-1], outcome=outcome, errors=[])
    assert missing(workload_sample.record(*runs)) == []
    (text,) = missing(workload_sample.record(*runs[:-1], *([] if outcome == "gone" else [last])))
    assert text.startswith("1 records are not there, first the run step/candidate/bfloat16")


def test_wrong_runs_of_the_candidate_cannot_be_taken_away():
    wrong = [
        msgspec.structs.replace(each, outcome="wrong", codes=["sum-for-mean"]) if each.side == "candidate" else each
        for each in workload_sample.whole()
    ]
    assert decided(workload_sample.record(*wrong)).decision == REVISE
    left = workload_sample.record(*(each for each in wrong if each.outcome == "right"))
    decision = decide(workload_sample.with_workload(measured(), left))
    assert decision.decision == AWAIT and "evidence-missing" in [each.code for each in decision.findings]


def test_a_step_that_is_wrong_in_one_dtype_only_accuses_no_candidate_there():
    """The step itself loses digits in bfloat16, whatever is in it."""
    runs = [
        msgspec.structs.replace(each, outcome="wrong", codes=["step-inexact"]) if each.dtype == "bfloat16" else each
        for each in workload_sample.whole()
    ]
    assert _codes(decided(workload_sample.record(*runs))) == ["workload-step-wrong"]
    candidates = [each for each in runs if each.side == "candidate" or each.outcome == "right"]
    right = [each for each in workload_sample.whole() if each.side != "candidate" and each.dtype == "bfloat16"]
    assert _codes(decided(workload_sample.record(*candidates, *right))) == ["step-inexact"]


def test_a_baseline_that_is_wrong_in_one_dtype_excuses_the_candidate_in_no_other():
    runs = [workload_sample.run(), _wrong("sum-for-mean", side="fused", dtype="bfloat16"), _wrong("count-dropped")]
    assert set(_codes(decided(workload_sample.record(*runs)))) == {"count-dropped", "workload-step-wrong"}
