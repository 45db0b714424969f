"""One bundle's evidence for each reason code of a target, and one accepted for each criterion."""

from __future__ import annotations

import pytest
from sample_evidence import replaced
from sample_receipts import changed, measured
from sample_target_codes import KEPT, SHOWN, no_step, unchecked, with_worth

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
    (found,) = [each for each in decision.findings if each.code == "session-cannot-tell"]
    assert "outputs-unchecked" in found.text


def test_a_boundary_of_another_kind_is_refused_by_name():
    """The session says its boundary too, so a receipt that only claims another one is altered; one that had another is not."""
    other = "from host arrays to host arrays"
    session = replaced(KEPT.receipts[0].session, boundary=other)
    evidence = changed(KEPT, boundary=other, session=session, verdict=session_verdict(session))
    assert "receipt-other-boundary" in codes(evidence) and decide(evidence).decision == AWAIT
    assert "receipt-altered" in codes(changed(KEPT, boundary=other))


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


def test_without_a_step_nothing_is_kept():
    assert decide(no_step()).decision == AWAIT


def test_every_effect_has_its_code():
    assert {reasons()[code].effect for code in SHOWN} == {"revise", "hold", "decline", "await", "keep", "note"}


def test_a_second_target_is_awaited_by_name():
    evidence = measured(audit={"targets": ["tpu:v5e", "gpu:h200"]})
    decision = decide(evidence)
    assert decision.decision == AWAIT
    assert decision.next_command.startswith("on a gpu:h200 device: kernel-audit measure doubling --target gpu")
    assert "tpu:v5e, float32: keep" in decision.summary
