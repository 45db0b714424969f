"""Audits as somebody would write them in five minutes, from file to decision, through every worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_audit import conduct
from kernel_audit.conduct import Answer, Question
from kernel_audit.decision import reasons
from kernel_audit.errors import AuditFileError
from kernel_audit.records import AWAIT, REVISE

HERE = Path(__file__).parent / "audits"


def checked(audit: str, candidate: str | None = None, *, quick: bool = True) -> Answer:
    place = f"{HERE / candidate}" if candidate else None
    question = Question(str(HERE / audit), candidate=place, quick=quick, late_seed=7)
    return conduct.check(question, lambda what, done, total: None)


def codes(answer: Answer) -> set[str]:
    """Of the findings that decide something."""
    found = {each.code for each in answer.decision.findings}
    return {code for code in found if reasons()[code].effect in ("revise", "forbid")}


def test_an_honest_kernel_of_which_nothing_is_stated():
    answer = checked("rms_norm.py")
    assert answer.decision.decision == AWAIT
    assert answer.decision.next_command.startswith("on a tpu:v5e device: ")
    cells, audit = answer.evidence.cells, answer.evidence.frozen.audit
    assert {each.outcome for each in cells} == {"agrees"}
    assert {each.engine for each in cells} == {"generic", "tpu-interpreter"}
    assert {each.configuration["rows"] for each in cells} == {8, 16}
    assert all(each.repeatable is not False and each.inputs_unchanged for each in cells)
    assert (audit.oracle.kind, audit.agreement.kind) == ("lifted", "derived")
    assert {each.family for each in cells} == set(audit.values.families)
    zeros = [each for each in answer.evidence.controls if each.name == "zeros"]
    assert zeros and {each.outcome for each in zeros} == {"rejected"}
    assert max(each.representation_gap_max or 0 for each in cells) > 0


@pytest.mark.parametrize("fault", ["rounded_early", pytest.param("last_block_forgotten", marks=pytest.mark.slow)])
def test_a_planted_fault(fault):
    answer = checked("rms_norm.py", f"planted.py:{fault}")
    assert answer.decision.decision == REVISE
    assert "values-differ" in codes(answer)
    assert codes(answer) <= {"values-differ", "not-repeatable"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("narrow_arithmetic", {"values-differ"}),
        ("tuning_changes_the_result", {"values-differ"}),
        ("plain_instead", {"no-kernel"}),
        ("scanned_and_reordered", set()),
    ],
)
def test_more_candidates_under_the_same_contract(fault, expected):
    answer = checked("rms_norm.py", f"planted.py:{fault}")
    assert codes(answer) == expected
    assert answer.decision.decision == (REVISE if expected else AWAIT)


@pytest.mark.slow
def test_the_honest_kernel_on_every_hostile_shape():
    answer = checked("rms_norm.py", quick=False)
    assert answer.decision.decision == AWAIT
    rows = {each.dims["t"] for each in answer.evidence.cells}
    assert rows >= {1, 7, 8, 9, 15, 16, 17, 24, 32, 48}


def test_modes_tuples_integers_and_an_oracle_by_hand():
    answer = checked("shift_and_step.py")
    assert answer.decision.decision == AWAIT
    cells = answer.evidence.cells
    assert {each.outcome for each in cells} == {"agrees"} and {each.kernel_error_max for each in cells} == {0.0}
    assert {each.name: each.decision for each in answer.decision.regimes} == {
        "negate=false": AWAIT,
        "negate=true": AWAIT,
    }
    assert all(each.permutation_holds for each in cells if each.dims["m"] > 1 and each.permutation_holds is not None)
    assert any(each.permutation_holds for each in cells)
    assert [(each.name, each.outcome) for each in answer.evidence.refusals] == [("float-shift", "refused")]
    forgotten = [each for each in answer.evidence.controls if each.name == "shift-forgotten"]
    assert {each.outcome for each in forgotten} == {"rejected"}
    assert {str(each.mode) for each in answer.evidence.controls} == {"{'negate': False}", "{'negate': True}"}
    assert set(answer.evidence.frozen.sources) == {"shift_and_step.py", "wrong_variants.py"}


@pytest.mark.slow
def test_a_mode_that_is_ignored_is_revised_in_its_regime_only():
    answer = checked("shift_and_step.py", "wrong_variants.py:mode_ignored")
    assert answer.decision.decision == REVISE
    assert {each.name: each.decision for each in answer.decision.regimes} == {
        "negate=false": AWAIT,
        "negate=true": REVISE,
    }
    assert {each.mode["negate"] for each in answer.evidence.cells if each.outcome == "differs"} == {True}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("second_result_dropped", {"result-shape-differs"}),
        ("counts_by_two", {"values-differ"}),
        ("nothing_refused", {"refusal-missing"}),
    ],
)
def test_more_faults_of_tuples_and_integers(fault, expected):
    answer = checked("shift_and_step.py", f"wrong_variants.py:{fault}")
    assert answer.decision.decision == REVISE
    assert codes(answer) == expected


@pytest.mark.slow
def test_a_gradient_through_a_kernel_in_a_scan():
    answer = checked("gradient.py")
    assert answer.decision.decision == AWAIT
    assert {each.outcome for each in answer.evidence.cells} == {"agrees"}
    assert all(len(each.kernels) >= 1 for each in answer.evidence.programs if each.side == "candidate")


@pytest.mark.slow
def test_a_tree_of_results_and_a_sum_that_cancels():
    answer = checked("reduction.py")
    assert answer.decision.decision == AWAIT
    assert {tuple(each.shape) for each in answer.evidence.cells} == {(128,)}  # of the first leaf by name


@pytest.mark.slow
def test_a_baseline_that_cannot_be_lifted_says_what_to_state():
    answer = checked("library.py:unlifted")
    assert answer.decision.decision is None
    assert "(oracle-failed)" in answer.decision.summary
    assert "'pallas_call', which cannot be lifted to float64" in answer.decision.summary


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "what", "got"),
    [
        ("raising", "the oracle raised", "ValueError: not today"),
        ("of-two", "results of another kind", "float64[8, 128], float64[8, 128]"),
        ("of-nothing", "results of another kind", "object[]"),
    ],
)
def test_an_oracle_that_is_none(name, what, got):
    with pytest.raises(AuditFileError, match=what) as caught:
        checked(f"library.py:{name}")
    assert caught.value.got == got
    assert caught.value.where.startswith("library.py:") and "x = float64[8, 128]" in str(caught.value)


def test_a_kernel_for_gpus_is_traced_for_one():
    answer = checked("backend.py:for-gpus")
    assert answer.decision.decision == AWAIT and answer.decision.next_command.startswith("on a gpu:h200 device: ")
    assert {each.simulated_device for each in answer.evidence.programs if each.side == "candidate"} == {"NVIDIA H200"}
    assert {each.engine for each in answer.evidence.cells} == {"generic"}


def test_each_configuration_runs_where_it_is_for():
    answer = checked("backend.py:for-both")
    assert answer.decision.decision == AWAIT
    run = {(each.engine, each.configuration["form"], each.configuration.get("rows")) for each in answer.evidence.cells}
    assert run == {
        *[(engine, "tpu", rows) for engine in ("generic", "tpu-interpreter") for rows in (8, 16)],
        ("generic", "triton", None),
    }
    assert [each.what for each in answer.evidence.frozen.plan.left_out] == ["tpu-interpreter form=triton"]
