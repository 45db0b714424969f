"""One bundle's evidence for each reason code of a target, and one accepted for each criterion."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sample_evidence import replaced
from sample_receipts import changed, failed, measured, worth
from sample_target_codes import (
    KEPT,
    SHOWN,
    alone,
    no_step,
    unchecked,
    with_altered_sample,
    with_session,
    with_worth,
    with_wrong_results,
)

from kernel_audit.decision import decide, exit_code, reasons
from kernel_audit.evidence import Evidence
from kernel_audit.records import AWAIT, BASELINE, KEEP, REVISE
from kernel_audit.statistics import session_verdict


def codes(evidence: Evidence) -> set[str]:
    return {each.code for each in decide(evidence).findings}


@pytest.mark.parametrize("code", SHOWN)
def test_evidence_that_shows_a_code(code: str):
    make, wanted = SHOWN[code]
    decision = decide(make())
    assert code in {each.code for each in decision.findings}
    assert decision.decision == wanted
    assert exit_code(decision) == (1 if wanted == REVISE else 0)


def test_times_of_results_that_nobody_saw_carry_nothing():
    decision = decide(unchecked())
    assert decision.decision == AWAIT
    assert unchecked().receipts[0].verdict.reasons == ["outputs-unchecked"]
    (found,) = [each for each in decision.findings if each.code == "receipt-altered"]
    assert "were to be judged" in found.text


def test_a_boundary_of_another_kind_is_refused_by_name():
    """The session says its boundary too, so a receipt that only claims another one is altered; one that had another is not."""
    other = "from host arrays to host arrays"
    session = replaced(KEPT.receipts[0].session, boundary=other)
    pilots = [replaced(each, boundary=other) for each in KEPT.receipts[0].pilots]
    evidence = changed(KEPT, boundary=other, session=session, verdict=session_verdict(session), pilots=pilots)
    assert "receipt-other-boundary" in codes(evidence) and decide(evidence).decision == AWAIT
    assert "receipt-altered" in codes(changed(KEPT, boundary=other))


@pytest.mark.parametrize("stage", ["export", "run", "compare", "time"])
def test_a_twin_that_fails_changes_no_finding(stage: str):
    lost = KEPT
    for place in range(len(KEPT.receipts)):
        lost = failed(lost, place, "ablation", stage=stage, all_lost=False)
    before, after = decide(KEPT), decide(lost)
    assert (after.decision, [each.code for each in after.findings]) == (KEEP, [each.code for each in before.findings])


def test_what_is_kept_says_on_which_device_and_by_what():
    decision = decide(KEPT)
    assert decision.level == "end-to-end"
    assert [(each.target, each.dtype, each.decision) for each in decision.regimes] == [
        ("tpu:v5e", "float32", KEEP),
        ("tpu:v5e", "bfloat16", KEEP),
    ]
    assert {each.judged_by for each in decision.regimes} == {"step-time in train.py:step"}
    assert {each.name: each.verdict for each in decision.review} == {
        "mathematics": "accept",
        "profiling": "accept",
        "kernel-correctness": "accept",
        "target-qualification": "accept",
        "decision": "accept",
    }


def test_peak_bytes_may_carry_the_decision():
    lean = with_worth(step={"peak": (500, 1000), "ratio": 1.0}, objective="peak-bytes", margin=0.3)
    assert decide(lean).decision == KEEP
    assert {each.judged_by for each in decide(lean).regimes} == {"peak-bytes in train.py:step"}
    fat = with_worth(step={"peak": (950, 1000), "ratio": 1.0}, objective="peak-bytes", margin=0.3)
    assert decide(fat).decision == BASELINE


def test_an_error_is_compared_with_that_of_the_most_exact_baseline():
    """The quickest baseline is not the measure where another one, which ran too, is more exact."""
    evidence = with_worth(step={"error": (0.1, 0.2), "ratio": 1.0}, objective="error", margin=0.3)
    assert decide(evidence).decision == KEEP
    for place, receipt in enumerate(evidence.receipts):
        exact = replaced(receipt.checks[1], name="exact", error_max=0.1)
        evidence = changed(evidence, place, checks=[*receipt.checks, exact])
    assert decide(evidence).decision == BASELINE


def test_without_a_step_nothing_is_kept():
    assert decide(no_step()).decision == AWAIT
    assert decide(alone(ratio=0.5)).decision == AWAIT


LOSING = {
    "slower": {"ratio": 1.1},
    "a margin of memory": {"peak": (2000, 1000)},
    "a margin of time": {"ratio": 1.3},
}


@pytest.mark.parametrize("what", LOSING)
def test_a_step_that_is_named_has_the_last_word_though_its_receipt_is_missing_or_failed(what: str):
    asked = {"worth": worth(not_to_lose={"peak-bytes": 0.1, "step-time": 0.2})}
    whole = measured(audit=asked, step={"ratio": 0.8, "peak": (1000, 1000)}, **LOSING[what])
    assert decide(whole).decision == KEEP
    without = replace(whole, receipts=[replaced(each, of=2) for each in whole.receipts[:2]])
    lost = failed(failed(whole, 2, "baseline"), 3, "baseline")
    for evidence in (without, lost):
        decision = decide(evidence)
        assert decision.decision == AWAIT
        assert not {each.code for each in decision.findings} & {"less-than-worth-alone", "margin-lost"}
        assert {each.judged_by for each in decision.regimes} == {""}


def test_a_failed_control_declines_nothing_and_loses_nothing():
    """A baseline that differs from itself: neither a gain too small nor a margin that is not lost."""
    asked = {"worth": worth(not_to_lose={"step-time": 0.05})}
    for ratio in (1.0, 0.97, 1.02):
        decision = decide(measured(audit=asked, step={"ratio": ratio, "control": 1.2}))
        assert decision.decision == AWAIT, ratio
        found = {each.code for each in decision.findings}
        assert "session-cannot-tell" in found and "margin-undecided" in found


def test_a_loss_is_not_hidden_by_altering_its_receipt():
    won, lost = measured(run="run-1"), measured(run="run-2", step={"ratio": 1.2})
    both = replace(won, receipts=[*won.receipts, *lost.receipts])
    assert decide(both).decision == BASELINE
    for place in (6, 7):
        both = with_altered_sample(both, place)
    assert {each.decision for each in decide(both).regimes} == {AWAIT}
    assert "receipt-altered" in codes(both)


@pytest.mark.parametrize(
    "changes",
    [{"contract": "sha256:0"}, {"sources": {}}, {"target": "tpu:v4"}, {"run": "run-3"}, {"of": 9}],
    ids=lambda each: next(iter(each)),
)
def test_a_loss_is_not_hidden_by_making_its_receipt_about_something_else(changes: dict):
    won, lost = measured(run="run-1"), measured(run="run-2", step={"ratio": 1.2})
    both = changed(replace(won, receipts=[*won.receipts, *lost.receipts[:3]]), 6, **changes)
    both = changed(
        replace(both, receipts=[*both.receipts, lost.receipts[3]]), 7, **({} if "run" in changes else changes)
    )
    assert decide(both).decision in (AWAIT, BASELINE)


def test_times_of_calls_decline_nothing_alone():
    evidence = alone(ratio=1.1)
    assert decide(evidence).decision == BASELINE
    for place, each in enumerate(evidence.receipts):
        processes = [replaced(one, dispatch_s=9e-4) for one in each.session.processes]
        session = replaced(each.session, processes=processes)
        evidence = changed(evidence, place, session=session, verdict=session_verdict(session))
    assert decide(evidence).decision == AWAIT
    assert "session-doubts" in codes(evidence)


def test_where_results_of_both_sides_are_wrong_nobody_is_accused():
    evidence = with_session(processes=with_wrong_results("candidate", "baseline"))
    assert decide(evidence).decision == AWAIT
    assert "session-refused" in codes(evidence) and "timed-output-differs" not in codes(evidence)


def test_every_effect_has_its_code():
    assert {reasons()[code].effect for code in SHOWN} == {"revise", "hold", "decline", "await", "keep", "note"}


def test_a_second_target_is_awaited_by_name():
    evidence = measured(audit={"targets": ["tpu:v5e", "gpu:h200"]})
    decision = decide(evidence)
    assert decision.decision == AWAIT
    assert decision.next_command.startswith("on a gpu:h200 device: kernel-audit measure doubling --target gpu")
    assert "tpu:v5e, float32: keep" in decision.summary
