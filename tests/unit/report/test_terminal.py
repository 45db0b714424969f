"""The text of the terminal: short, complete, and without a way to steer the terminal."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import sample_evidence
from sample_evidence import replaced

from kernel_audit.records import Finding
from kernel_audit.report import full_text, summary_lines


def test_the_summary_holds_decision_command_and_page() -> None:
    sample = sample_evidence.agreeing()
    lines = summary_lines(sample.evidence, sample.decision, page="evidence/doubling/report.html")
    assert lines[0].split() == ["decision", "await-target-evidence"]
    assert lines[-2].endswith("kernel-audit check doubling --target tpu:v5e")
    assert lines[-1].endswith("evidence/doubling/report.html")
    assert any("6 of 6 planned: 4 agree, 2 recorded" in line for line in lines)
    assert any("no such device here" in line for line in lines)


def test_lines_are_no_wider_than_a_terminal_except_what_is_copied() -> None:
    sample = sample_evidence.failing()
    decision = replaced(sample.decision, summary="many words " * 60, next_command="kernel-audit check " + "x" * 200)
    lines = summary_lines(sample.evidence, decision, page="a/" * 90)
    long = [line for line in lines if len(line) > 100]
    assert [line.split()[0] for line in long] == ["next", "page"]


def test_many_findings_are_counted_instead_of_listed() -> None:
    sample = sample_evidence.agreeing()
    findings = [Finding(code=f"code-{index}", subject="kernel", text="text") for index in range(30)]
    text = "\n".join(summary_lines(sample.evidence, replaced(sample.decision, findings=findings), page=""))
    assert "code-7." in text and "code-8." not in text and "and 22 more" in text
    environment = replaced(sample.evidence.environment, not_run=[f"thing {index}" for index in range(9)])
    text = "\n".join(summary_lines(replace(sample.evidence, environment=environment), sample.decision, page=""))
    assert "thing 3" in text and "thing 4" not in text and "and 5 more" in text


def test_a_missing_decision_is_said() -> None:
    sample = sample_evidence.agreeing()
    lines = summary_lines(sample.evidence, replaced(sample.decision, decision=None), page="")
    assert lines[0].startswith("decision   none: A fault of the audit")


def test_control_characters_are_shown_and_not_sent() -> None:
    sample = sample_evidence.failing(note="\x1b]0;title\x07 \x1b[31mred\u202e\nnew line")
    decision = replaced(sample.decision, summary="\x1b[2J\rkeep", next_command="\x1b[8m", decision="\x1bkeep")
    text = full_text(sample.evidence, decision)
    for line in [*text.split("\n"), *summary_lines(sample.evidence, decision, page="\x1b")]:
        assert line.isprintable(), repr(line)
    assert "\\u001b" in text


def test_the_full_text_lists_what_does_not_agree() -> None:
    sample = sample_evidence.failing()
    text = full_text(sample.evidence, sample.decision)
    for expected in (
        "first at [0, 128]: 0.0 instead of 1.5",
        "ended by signal 11",
        "a data race was seen",
        "WRONG SIDE",
    ):
        assert expected in " ".join(text.split())


def test_importing_the_report_loads_nothing_heavy() -> None:
    heavy = ["jax", "numpy", "altair", "vl_convert", "jinja2", "rich", "scipy", "kernel_audit.matrix"]
    code = f"import sys, kernel_audit.report as r; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
