"""The quality figures: every planted fault is found by a code that names it, no honest kernel is accused.

By default one in six on a small plan; a third of the others, and some on the built-in audits as they are, in the slow run;
all of them in the exhaustive run.
"""

from __future__ import annotations

from typing import Any

import pytest
from corpus import FAULTS, HONEST, HOSTILE, Specimen
from sampling import sampled
from trial import Trials

from kernel_audit.conduct import Answer
from kernel_audit.decision import exit_code, reasons
from kernel_audit.records import AWAIT, REVISE


def _name(specimen: Specimen) -> str:
    return specimen.name


def _broken(answer: Answer) -> dict[str, str]:
    """Codes that break a promise or forbid a decision, with their texts."""
    effects = reasons()
    return {
        each.code: each.text for each in answer.decision.findings if effects[each.code].effect in ("revise", "forbid")
    }


def _expect_fault(specimen: Specimen, answer: Answer) -> None:
    found = _broken(answer)
    assert set(found) & set(specimen.expect), f"{specimen.why}: expected {specimen.expect}, found {found}"
    assert answer.decision.decision == REVISE, answer.decision.summary
    assert exit_code(answer.decision) == 1


def _expect_honest(specimen: Specimen, answer: Answer) -> None:
    assert not _broken(answer), f"{specimen.why}: accused of {_broken(answer)}"
    assert answer.decision.decision == AWAIT


def _every(step: int, specimens: list[Specimen]) -> list[Specimen]:
    return specimens[::step]


def _one_in_twenty(specimens: list[Specimen]) -> list[Any]:
    return sampled(specimens, _name, quick=lambda index, _: index % 20 == 0, slow_step=6)


@pytest.mark.parametrize("specimen", _one_in_twenty(FAULTS))
def test_planted_fault_is_found(specimen: Specimen, trials: Trials) -> None:
    _expect_fault(specimen, trials.try_(specimen))


@pytest.mark.parametrize("specimen", _one_in_twenty(HONEST))
def test_honest_kernel_is_not_accused(specimen: Specimen, trials: Trials) -> None:
    _expect_honest(specimen, trials.try_(specimen))


@pytest.mark.parametrize("specimen", _one_in_twenty(HOSTILE))
def test_hostile_candidate_costs_itself_only(specimen: Specimen, trials: Trials) -> None:
    answer = trials.try_(specimen)
    if specimen.expect:
        _expect_fault(specimen, answer)
    else:
        _expect_honest(specimen, answer)


@pytest.mark.slow
@pytest.mark.parametrize("specimen", _every(96, FAULTS), ids=_name)
def test_planted_fault_is_found_by_the_whole_audit(specimen: Specimen, whole_trials: Trials) -> None:
    _expect_fault(specimen, whole_trials.try_(specimen))


@pytest.mark.slow
@pytest.mark.parametrize("specimen", _every(40, HONEST), ids=_name)
def test_honest_kernel_is_not_accused_by_the_whole_audit(specimen: Specimen, whole_trials: Trials) -> None:
    _expect_honest(specimen, whole_trials.try_(specimen))


def test_corpus_is_as_large_as_promised() -> None:
    assert len(FAULTS) >= 50 and len(HONEST) >= 20
    assert len({each.name for each in [*FAULTS, *HONEST, *HOSTILE]}) == len(FAULTS) + len(HONEST) + len(HOSTILE)
