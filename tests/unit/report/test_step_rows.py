"""The step beside its estimate: gains, losses, what is not comparable, and that no decision rests on it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import sample_receipts
from sample_evidence import replaced
from sample_receipts import changed, failed, measured
from sample_target_codes import KEPT, with_session, with_wrong_results

import kernel_audit.decision
from kernel_audit.decision import decide
from kernel_audit.evidence import Evidence
from kernel_audit.records import digest_of
from kernel_audit.report import full_text, render_page
from kernel_audit.report.step_rows import CONDITION, SAYS, step_row_texts, step_rows_of

LONG = {"base_s": 4e-3}  # the step takes four times as long as the kernel alone


def said(evidence: Evidence) -> set[str]:
    return {each.says for each in step_rows_of(evidence)}


@pytest.mark.parametrize(
    ("alone", "step", "says"),
    [
        (0.6, 0.9, "agrees"),
        (0.6, 0.7, "gained-more"),
        (0.6, 0.97, "gained-less"),
        (1.4, 1.1, "agrees"),
        (1.4, 1.0, "gained-more"),
        (1.4, 1.3, "gained-less"),
    ],
)
def test_gains_and_losses(alone: float, step: float, says: str):
    rows = step_rows_of(measured(ratio=alone, step={"ratio": step, **LONG}))
    assert [each.what for each in rows] == ["float32", "bfloat16"]
    assert {each.says for each in rows} == {SAYS[says]}
    assert rows[0].device == "tpu:v5e (TPU v5 lite)"


def test_the_share_says_its_condition_and_the_estimate_its_interval():
    evidence = measured(ratio=0.6, step={"ratio": 0.9, **LONG})
    alone, step = evidence.receipts[0].verdict, evidence.receipts[2].verdict
    share = alone.sides[1].median_s / step.sides[1].median_s
    assert share == pytest.approx(0.25, rel=0.05)
    row = step_rows_of(evidence)[0]
    assert row.share == f"p = {share:.1%} {CONDITION}"
    low, ratio, high = (1 - share + share * each for each in (alone.ratio.low, alone.ratio.ratio, alone.ratio.high))
    assert row.estimate == f"{ratio:.3f} [{low:.3f}, {high:.3f}]"
    assert row.observed == f"{step.ratio.ratio:.3f} [{step.ratio.low:.3f}, {step.ratio.high:.3f}]"


@pytest.mark.parametrize("says", ["gained-more", "gained-less"])
def test_reasons_are_labelled_as_an_inference(says: str):
    assert SAYS[says].endswith("(inference: fusion, layout or memory are possible reasons)")


def test_a_kernel_that_takes_longer_alone_than_the_step_is_not_compared():
    rows = step_rows_of(measured(ratio=0.6, base_s=8e-3, step={"ratio": 0.9, **LONG}))
    assert all(each.says.startswith("not comparable: the baseline alone takes") for each in rows)
    assert all(each.share == each.estimate == "" and each.observed != "none" for each in rows)


def test_other_programs_or_versions_are_not_compared():
    def other(receipt, role, name):
        programs = [replaced(each, name=name) if each.role == role else each for each in receipt.programs]
        choices = [replaced(each, chosen=name) if each.role == role else each for each in receipt.choices]
        checks = [replaced(each, name=name) if each.role == role else each for each in receipt.checks]
        return {"programs": programs, "choices": choices, "checks": checks}

    scan = step_rows_of(changed(KEPT, 2, **other(KEPT.receipts[2], "baseline", "scan")))[0]
    assert scan.says == "not comparable: alone the baseline is 'fused', in the step 'scan'" and not scan.estimate
    newer = {**KEPT.receipts[2].versions, "jaxlib": "9"}
    assert "not comparable: measured with other versions" in said(changed(KEPT, 2, versions=newer))


def test_a_session_without_a_ratio_that_holds_is_not_compared():
    refused = with_session(processes=with_wrong_results("candidate"))
    unsound = measured(step={"control": 1.3})
    assert "not comparable: the session of the kernel alone reports no ratio that can be used" in said(refused)
    assert said(unsound) == {"not comparable: the session of the step reports no ratio that can be used"}
    assert step_rows_of(failed(KEPT, 2, "candidate"))[0].observed == "none"


def test_only_receipts_that_count_and_only_of_the_same_place():
    stale = {"sources": {label: digest_of("older") for label in KEPT.receipts[0].sources}}
    assert [each.what for each in step_rows_of(changed(KEPT, 0, **stale))] == ["bfloat16"]
    assert [each.what for each in step_rows_of(changed(KEPT, 2, **stale))] == ["bfloat16"]
    assert step_rows_of(replace(KEPT, receipts=KEPT.receipts[:2])) == []
    assert step_rows_of(sample_receipts.evidence()) == []


def test_of_several_measurements_the_same_one_is_preferred():
    audit = KEPT.frozen.audit
    apart = replace(KEPT, receipts=[*KEPT.receipts, sample_receipts.receipt(audit, ratio=0.5, run="run-2")])
    assert len(step_rows_of(apart)) == 2
    late = sample_receipts.receipt(audit, ratio=0.8, run="run-2")
    rows = step_rows_of(replace(KEPT, receipts=[late, *KEPT.receipts[1:]]))
    assert rows[0].says == "agrees; measured apart" and rows[1].says == "agrees"


def test_page_and_text_show_it():
    evidence = measured(ratio=0.6, step={"ratio": 0.7, **LONG})
    text = " ".join(full_text(evidence, decide(evidence)).split())
    assert all(each in text for each in step_row_texts(evidence))
    page = render_page(evidence, decide(evidence), {}).decode()
    assert "The step beside its estimate" in page and "No decision depends on it" in page
    assert page.count(SAYS["gained-more"]) == 2


def test_no_decision_depends_on_it():
    """The words of the arithmetic and of the rows occur nowhere in the deciding half."""
    folder = Path(kernel_audit.decision.__file__).parent
    texts = [each.read_text("utf-8") for each in sorted(folder.glob("*.py"))]
    assert texts and not [word for word in ("step_estimate", "step_ratio", "step_rows") if word in "".join(texts)]
