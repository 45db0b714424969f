"""Every wrong step is found by the reason that names its mistake; as a workload it is a finding about the audit.

By default a few; all of them in the slow run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from corpus_steps import RIGHT, WRONG
from step_trial import StepTrials

from kernel_audit.decision import exit_code, reasons
from kernel_audit.records import AWAIT, REVISE, Decision


def _some(names: Iterable[str], quick: set[str]) -> list[Any]:
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StepTrials]:
    made = StepTrials(tmp_path_factory.mktemp("steps"))
    yield made
    made.close()


def _broken(decision: Decision) -> dict[str, str]:
    return {each.code: each.text for each in decision.findings if reasons()[each.code].effect in ("revise", "forbid")}


@pytest.mark.parametrize("name", _some(WRONG, {"mean_of_means"}))
def test_a_wrong_step_of_the_candidate_is_revised(name: str, trials: StepTrials) -> None:
    record, decision = trials.as_candidates(name)
    assert WRONG[name] in _broken(decision), [(each.partition, each.codes, each.note) for each in record.runs]
    assert set(_broken(decision)) == {WRONG[name]}
    assert decision.decision == REVISE and exit_code(decision) == 1
    criterion = next(each for each in decision.review if each.name == reasons()[WRONG[name]].criterion)
    assert criterion.verdict == "revise"


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_step_as_workload_is_a_finding_about_the_audit(name: str, trials: StepTrials) -> None:
    _, decision = trials.as_workload(name)
    broken = _broken(decision)
    assert "workload-step-wrong" in broken and broken["workload-step-wrong"].startswith(WRONG[name]), broken
    assert decision.decision is None and exit_code(decision) == 2
    assert all(each.subject == "audit" for each in decision.findings if each.code == "workload-step-wrong")


@pytest.mark.parametrize("name", _some(RIGHT, {"counted_weights"}))
def test_a_right_step_is_not_accused(name: str, trials: StepTrials) -> None:
    record, decision = trials.as_candidates(name)
    assert not _broken(decision)
    assert decision.decision == AWAIT
    assert {each.outcome for each in record.runs} == {"right"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gathered_sums", "gathered_gradients"])
def test_what_a_step_gathers_that_is_no_operand_is_not_accused_on_any_partition(
    name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With one row a device there are as many losses as examples, and as many numbers in all gradients as in all rows."""
    trials = StepTrials(tmp_path_factory.mktemp("all"), quick=False)
    record, decision = trials.as_candidates(name)
    trials.close()
    assert not _broken(decision)
    assert {each.outcome for each in record.runs} == {"right"} and not any(each.gathered for each in record.runs)
