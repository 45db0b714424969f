"""What people read, held to files: run with UPDATE_GOLDEN=1 to write them again, and read the difference."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import sample_evidence

from kernel_audit.report import full_text, render_page, summary_lines

FILES = Path(__file__).parent / "files"
SAMPLES = ["agreeing", "failing"]


def hold(name: str, text: str) -> None:
    path = FILES / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SAMPLES)
def test_summary(name: str) -> None:
    sample = getattr(sample_evidence, name)()
    lines = summary_lines(sample.evidence, sample.decision, page="evidence/doubling/report.html")
    hold(f"summary-{name}.txt", "\n".join(lines) + "\n")


@pytest.mark.parametrize("name", SAMPLES)
def test_full_text(name: str) -> None:
    sample = getattr(sample_evidence, name)()
    hold(f"report-{name}.txt", full_text(sample.evidence, sample.decision))


@pytest.mark.parametrize("name", SAMPLES)
def test_top_of_the_page(name: str) -> None:
    sample = getattr(sample_evidence, name)()
    page = render_page(sample.evidence, sample.decision, {}, sample.sources).decode()
    found = re.search(r'<header class="page">.*?<section id="observed">', page, re.DOTALL)
    assert found is not None
    hold(f"page-{name}.html", found.group() + "\n")
