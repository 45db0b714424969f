"""What judges a bundle cannot load JAX: here a `jax` that raises on import comes first on the path."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
import sample_evidence

from kernel_audit.decision import decide
from kernel_audit.evidence import write_bundle
from kernel_audit.report import precision_gap_figure, render_page

SAYS = "this jax is not to be imported"


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH whose jax and jaxlib raise on import."""
    folder = tmp_path_factory.mktemp("poisoned")
    for name in ("jax", "jaxlib"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(f"raise ImportError({SAYS!r})\n")
    return folder


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle with cells, controls, refusals, sources, figures and page."""
    sample = sample_evidence.agreeing()
    frozen = msgspec.structs.replace(sample.evidence.frozen, reference="axpy")
    sample = replace(sample, evidence=replace(sample.evidence, frozen=frozen))
    decision, figures = decide(sample.evidence), precision_gap_figure(sample.evidence)
    page = render_page(sample.evidence, decision, figures, sample.sources)
    out = tmp_path_factory.mktemp("bundles") / "doubling"
    write_bundle(sample.evidence, decision, sample.sources, figures, page, out)
    return out


def kernel_audit(poisoned: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the tool with the poisoned JAX first on its path."""
    environment = {**os.environ, "PYTHONPATH": str(poisoned)}
    command = [sys.executable, "-m", "kernel_audit", *arguments]
    return subprocess.run(command, env=environment, cwd=poisoned, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("command", ["decide", "verify", "report"])
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_a_bundle_is_judged_without_jax(command: str, as_json: bool, poisoned: Path, bundle: Path):
    done = kernel_audit(poisoned, command, str(bundle), *(["--json"] if as_json else []))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_the_page_is_written_again_without_jax(poisoned: Path, bundle: Path, tmp_path: Path):
    done = kernel_audit(poisoned, "report", str(bundle), "--html", str(tmp_path / "again.html"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again.html").read_bytes() == (bundle / "report.html").read_bytes()


@pytest.mark.parametrize("arguments", [["explain"], ["explain", "values-differ"], ["--help"], ["run", "--help"]])
def test_words_are_explained_without_jax(arguments: list[str], poisoned: Path):
    done = kernel_audit(poisoned, *arguments)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_finished_audit_is_read_without_jax(poisoned: Path, bundle: Path):
    done = kernel_audit(poisoned, "run", "axpy", "--out", str(bundle))
    assert done.returncode == 0, done.stderr
    assert "finished" in done.stdout


def test_the_poison_works(poisoned: Path):
    """`check` needs JAX, in its workers: with the same path it must fail, and say at what."""
    done = kernel_audit(poisoned, "check", "axpy", "--cells", "lesson")
    assert done.returncode == 2
    assert SAYS in done.stderr
