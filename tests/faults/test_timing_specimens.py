"""What looks fast and is not ends no better than its honest twin, or in the finding named for it; honest programs do not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))

from timing_honest import HONEST
from timing_specimens import SPECIMENS
from timing_stage import Case

from kernel_audit.records import FASTER, NO_DIFFERENCE
from kernel_audit.statistics import session_verdict


def _names(cases: tuple[Case, ...]) -> list:
    return [pytest.param(each, id=each.name.replace(" ", "-").replace(":", "")) for each in cases]


@pytest.mark.parametrize("case", _names(SPECIMENS))
def test_a_specimen_gains_nothing(case: Case):
    verdict = session_verdict(case.session())
    assert verdict.verdict in case.verdicts
    said = {*verdict.reasons, *verdict.findings, *verdict.voided}
    assert not case.reason or case.reason in said
    assert verdict.verdict != FASTER or verdict.findings


@pytest.mark.parametrize("case", _names(HONEST))
def test_an_honest_program_is_not_accused(case: Case):
    verdict = session_verdict(case.session())
    assert verdict.verdict in case.verdicts
    assert verdict.findings == [] and verdict.voided == {}


def test_the_honest_twin_itself_shows_no_difference():
    twin = next(each for each in HONEST if each.name == "the twin")
    assert session_verdict(twin.session()).verdict == NO_DIFFERENCE
