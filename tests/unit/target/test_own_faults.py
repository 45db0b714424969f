"""What a candidate does by itself is not put down to a compiler, and what got no answer is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_audit.conduct import Question
from kernel_audit.conduct.compiling import CompileQuestion, compile_audit, exit_code
from kernel_audit.matrix.laboratory import Limits
from kernel_audit.records import CompiledReport
from kernel_audit.target import described

AUDITS = Path(__file__).parent / "compiled" / "own_faults.py"


@pytest.fixture(autouse=True)
def a_compiler_that_is_never_asked(monkeypatch):
    monkeypatch.setattr(described, "find_spec", lambda name: name)


def compiled(name: str, *targets: str, deadline_s: float = 120.0) -> CompiledReport:
    question = Question(audit=f"{AUDITS}:{name}", limits=Limits(deadline_s), workers=1)
    return compile_audit(CompileQuestion(question, targets or ("tpu:v5e",)), lambda *_: None)


def test_a_mistake_of_the_candidate_is_not_the_compilers():
    report = compiled("mistaken")
    (found,) = report.findings
    assert (found.code, found.subject, found.scope) == ("candidate-raises", "kernel", "any target")
    assert "NoneType" in found.text and "own_faults.py:" in found.text
    assert report.records[0].reason.stage == "candidate" and exit_code(report) == 1


@pytest.mark.slow
def test_an_exit_is_the_candidates_and_a_baselines_mistake_the_audits():
    report = compiled("stops")
    assert {each.code: each.subject for each in report.findings} == {
        "candidate-raises": "kernel",
        "baseline-raises": "audit",
    }
    assert exit_code(report) == 1


@pytest.mark.slow
def test_a_guard_that_refuses_what_is_declared():
    report = compiled("guards")
    assert [each.reason.stage for each in report.records] == ["guard", "guard"]
    assert [each.code for each in report.findings] == ["candidate-raises"] * 2 and exit_code(report) == 1


@pytest.mark.slow
def test_what_raises_for_a_target_that_the_audit_is_not_for_is_no_finding():
    report = compiled("mistaken", "tpu:v6e")
    assert report.findings == [] and exit_code(report) == 0


@pytest.mark.parametrize(
    "name", ["ends", *[pytest.param(each, marks=pytest.mark.slow) for each in ("hangs", "patches")]]
)
def test_a_worker_that_ends_without_an_answer_is_said(name):
    report = compiled(name, deadline_s=8.0)
    assert report.records[0].accepted is None
    assert [(each.code, each.subject) for each in report.findings] == [("not-compiled", "environment")]
    assert exit_code(report) == 2
