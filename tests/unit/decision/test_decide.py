"""What outweighs what, decisions by mode, the review, and the same bytes again."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sample_evidence
import sample_without_device
from sample_evidence import replaced

from kernel_audit.contract import Worth
from kernel_audit.decision import decide, declared_targets, exit_code
from kernel_audit.evidence import Evidence
from kernel_audit.records import AWAIT, REVISE, digest_of, encode

BASE = sample_evidence.agreeing().evidence
WRONG = {"outcome": "differs", "code": "values-differ"}
CRITERIA = ["mathematics", "profiling", "kernel-correctness", "target-qualification", "decision"]


def with_cells(*changes: dict) -> Evidence:
    cells = [
        replaced(cell, **(changes[index] if index < len(changes) else {})) for index, cell in enumerate(BASE.cells)
    ]
    return replace(BASE, cells=cells)


def with_wrong_control(evidence: Evidence) -> Evidence:
    wrong = [
        replaced(each, outcome="accepted") if each.name == "zeros" and index < 4 else each
        for index, each in enumerate(evidence.controls)
    ]
    return replace(evidence, controls=wrong)


def verdicts(evidence: Evidence) -> dict[str, str]:
    return {each.name: each.verdict for each in decide(evidence).review}


def test_a_fault_of_the_audit_forbids_any_decision():
    decision = decide(with_wrong_control(BASE))
    assert (decision.decision, exit_code(decision)) == (None, 2)
    assert decision.summary.startswith("No decision: a fault of the audit (control-accepted).")


def test_a_fault_of_the_audit_outweighs_one_of_the_kernel():
    decision = decide(with_wrong_control(with_cells(WRONG)))
    assert decision.decision is None and decision.findings[0].code == "control-accepted"
    assert {"values-differ", "control-accepted"} <= {each.code for each in decision.findings}


def test_a_dead_environment_outweighs_a_fault_of_the_kernel():
    crashed = {"outcome": "crashed", "output_digest": None, "baseline_outcome": "crashed"}
    assert decide(with_cells(WRONG, crashed)).decision is None


def test_a_contract_that_nobody_keeps_does_not_excuse_the_kernel_elsewhere():
    nobody = {**WRONG, "baseline_outcome": "differs"}
    assert decide(with_cells(nobody)).decision is None
    decision = decide(with_cells(nobody, WRONG))
    assert (decision.decision, exit_code(decision)) == (REVISE, 1)
    assert "The kernel breaks 1 promise. values-differ" in decision.summary


def test_findings_are_in_the_order_of_their_weight():
    decision = decide(with_wrong_control(with_cells({**WRONG}, {"races": True})))
    assert [each.code for each in decision.findings] == [
        "control-accepted",
        "race-detected",
        "values-differ",
        "no-target-receipt",
        "interpreter-blind-spots",
        "no-step-named",
    ]


def test_the_same_bytes_again_in_any_order_of_the_cells():
    for evidence in (BASE, sample_evidence.failing().evidence):
        before = digest_of(evidence.cells)
        assert encode(decide(evidence)) == encode(decide(evidence))
        assert digest_of(evidence.cells) == before
    assert decide(replace(BASE, cells=BASE.cells[::-1])).decision == decide(BASE).decision


def moded(*changes: dict) -> Evidence:
    """The cells of the sample in two modes, alternately."""
    modes = [{"causal": False}, {"causal": True}]
    made = with_cells(*changes)
    return replace(made, cells=[replaced(each, mode=modes[index % 2]) for index, each in enumerate(made.cells)])


def regimes(evidence: Evidence) -> dict[str, tuple[str | None, list[str]]]:
    return {each.name: (each.decision, each.codes) for each in decide(evidence).regimes}


def test_one_regime_where_there_is_no_mode():
    assert regimes(BASE) == {"all": (AWAIT, ["no-target-receipt"])}


def test_a_fault_in_one_mode_is_of_its_regime():
    assert regimes(moded({}, WRONG)) == {
        "causal=false": (AWAIT, ["no-target-receipt"]),
        "causal=true": (REVISE, ["values-differ", "no-target-receipt"]),
    }


def test_what_names_no_cell_holds_in_every_regime():
    found = regimes(with_wrong_control(moded()))
    assert {each[0] for each in found.values()} == {None}


def test_review_of_evidence_that_agrees():
    assert verdicts(BASE) == {
        "mathematics": "unresolved",
        "profiling": "unresolved",
        "kernel-correctness": "accept",
        "target-qualification": "unresolved",
        "decision": "accept",
    }
    assert [each.name for each in decide(BASE).review] == CRITERIA
    text = decide(BASE).review[2].text
    assert text.startswith("4 cells agree (bfloat16, float32), tails included; 1 refusals kept;")


def test_review_of_a_broken_promise():
    found = {each.name: each for each in decide(with_cells(WRONG)).review}
    assert found["kernel-correctness"].verdict == "revise" and found["kernel-correctness"].codes == ["values-differ"]


def test_review_where_the_audit_cannot_show_it():
    assert verdicts(with_wrong_control(BASE))["kernel-correctness"] == "unresolved"
    divisible = replace(BASE, cells=[replaced(each, shape=[16, 256]) for each in BASE.cells])
    found = decide(divisible).review[2]
    assert (found.verdict, found.codes) == ("unresolved", ["divisible-only"])


def test_review_of_a_simulation_that_passes_for_an_execution():
    opened = replaced(BASE.refusals[0], name="door-opened", outcome="simulates", message="True")
    evidence = replace(BASE, refusals=[*BASE.refusals, opened])
    assert verdicts(evidence)["target-qualification"] == "revise"


def test_review_where_planned_cells_are_missing():
    assert verdicts(replace(BASE, cells=BASE.cells[1:]))["decision"] == "unresolved"


def test_review_names_the_step_that_was_not_run():
    named = replaced(BASE.frozen.audit, worth=Worth(objective="step-time", margin=0.02, step="train.py:step"))
    evidence = replace(BASE, frozen=replaced(BASE.frozen, audit=named))
    assert "train.py:step was not run" in decide(evidence).review[0].text
    assert "no-step-named" not in {each.code for each in decide(evidence).findings}


@pytest.mark.parametrize(("targets", "declared"), [(None, ["tpu:v5e"]), ([], []), (["gpu:h200"], ["gpu:h200"])])
def test_targets(targets, declared):
    audit = replaced(BASE.frozen.audit, targets=targets)
    evidence = replace(BASE, frozen=replaced(BASE.frozen, audit=audit))
    assert declared_targets(evidence) == declared
    decision = decide(evidence)
    assert decision.decision == AWAIT
    command = decision.next_command
    assert (f"on a {declared[0]} device" in command) if declared else command == "state targets= in the audit"


def test_interpretation_never_decides_more_than_revise():
    for evidence in (BASE, with_cells(WRONG), with_wrong_control(BASE), sample_evidence.failing().evidence):
        decision = decide(evidence)
        assert decision.decision in (None, AWAIT, REVISE)
        assert decision.level == "interpreted"
        assert decision.levels["executed"] == decision.levels["end-to-end"] == "nothing"


def test_compilation_never_decides_more_than_revise():
    program = BASE.programs[0]
    accepted = replace(BASE, compiled=[sample_without_device.compiled(program)])
    assert (decide(accepted).decision, decide(accepted).level) == (AWAIT, "compiled")
    assert decide(accepted).levels["compiled"] == "tpu:v5e: 1 of 1 programs accepted by libtpu 0.0.37"
    refused = decide(replace(BASE, compiled=[sample_without_device.refused(program)]))
    assert (refused.decision, refused.level) == (REVISE, "interpreted")  # what was refused reaches no level
    assert "tpu:v5e" in next(each.scope for each in refused.findings if each.code == "compiler-refuses")
    of_baseline = sample_without_device.refused(program, "compiler-refuses-baseline", "audit")
    assert decide(replace(BASE, compiled=[replaced(of_baseline, side="fused")])).decision == AWAIT


def test_levels_count_what_ran():
    decision = decide(BASE)
    assert decision.levels["traced"] == "6 programs, 4 distinct kernels"
    assert decision.levels["interpreted"] == "4 cells in the TPU interpreter, 2 cells in the generic interpreter"
    nothing = replace(BASE, cells=[replaced(each, output_digest=None, outcome="crashed") for each in BASE.cells])
    assert decide(nothing).level == "traced" and decide(nothing).levels["interpreted"] == "nothing"


def test_counts():
    decision = decide(with_cells(WRONG))
    assert decision.counts["differs"] == 1 and sum(decision.counts.values()) == len(BASE.cells)
