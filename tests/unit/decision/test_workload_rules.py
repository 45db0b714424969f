"""Whose fault a wrong step is, which of several explanations is told, and what becomes of the decision."""

from __future__ import annotations

import pytest
import workload_sample
from sample_evidence import agreeing

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
    wrong = _wrong("missing-reduction", side="twice")
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
    import msgspec

    good = workload_sample.record().processes[0]
    found = decided(workload_sample.record(processes=[msgspec.structs.replace(good, outcome=outcome, cause=1)]))
    assert found.decision == decision and code in [each.code for each in found.findings]
