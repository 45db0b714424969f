"""assessments/check_assessments.py: what it prints, and that a planted mistake makes it exit 1."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from course_scripts import ROOT, loaded, run

SCRIPT = "assessments/check_assessments.py"
GOLDEN = Path(__file__).parent / "files" / "assessment.txt"


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return loaded(SCRIPT, monkeypatch)


@pytest.fixture
def quick(checks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Without what takes an engine."""
    monkeypatch.setattr(checks, "observed", lambda: None)
    monkeypatch.setattr(checks, "fixture_checks", lambda evidence: [])
    monkeypatch.setattr(checks, "configuration_checks", lambda evidence: [])
    return checks


def plant_an_unweighted_mean(checks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "count_weighted_mean", lambda means, counts: checks.unweighted_mean(means))


def test_right_means_pass(quick: ModuleType, capsys: pytest.CaptureFixture[str]):
    assert quick.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "4 passed, 0 failed"
    assert all(line.startswith("pass  ") for line in lines[:-1])
    assert "without counts: max error 0.0468" in lines[1]


def test_a_planted_unweighted_mean_fails(quick: ModuleType, monkeypatch, capsys: pytest.CaptureFixture[str]):
    plant_an_unweighted_mean(quick, monkeypatch)
    assert quick.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "3 passed, 1 failed"
    assert [line for line in lines if line.startswith("FAIL")] == [lines[0]]
    assert "joined by count: max error 0.0468" in lines[0]


def test_another_speedup_fails(quick: ModuleType, monkeypatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(quick, "conditional_speedup", lambda share, local: 1 / (1 - share / local) + 1e-15)
    assert quick.main() == 1
    assert capsys.readouterr().out.splitlines()[-1] == "3 passed, 1 failed"


@pytest.mark.parametrize(
    ("actual", "error"), [([[1.0, 2.0]], 0.0), ([[1.0, 2.5]], 0.5), ([[1.0]], float("inf")), ([[1.0, np.nan]], np.nan)]
)
def test_differences_are_seen(actual: list, error: float, checks: ModuleType):
    found = checks.largest_difference(np.array(actual), np.array([[1.0, 2.0]]))
    np.testing.assert_equal(found, error)


def test_padding_is_counted(checks: ModuleType):
    text = checks.configuration_text((17, 257), (8, 128), 3)
    assert "programs 9, padded elements 9216 (4847 beyond the matrix), data buffers by model 32768 bytes" in text


@pytest.mark.slow
def test_the_whole_assessment(tmp_path: Path):
    """As a reader runs it, from another folder."""
    done = run(SCRIPT, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(done.stdout, encoding="utf-8")
    assert done.stdout == GOLDEN.read_text("utf-8")


@pytest.mark.slow
def test_one_planted_mean_fails_alone(checks: ModuleType, monkeypatch, capsys: pytest.CaptureFixture[str]):
    plant_an_unweighted_mean(checks, monkeypatch)
    assert checks.main() == 1
    passed = len(GOLDEN.read_text("utf-8").splitlines()) - 2
    assert capsys.readouterr().out.splitlines()[-1] == f"{passed} passed, 1 failed"


@pytest.mark.slow
@pytest.mark.parametrize("script", [SCRIPT, "examples/lesson.py"])
def test_scripts_run_where_the_package_is_not_installed(script: str, tmp_path: Path):
    """An environment that reaches the libraries, but not the installed package."""
    venv.create(tmp_path / "bare", symlinks=True)
    python = tmp_path / "bare" / "bin" / "python"
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    for each in Path(np.__file__).parents[1].iterdir():
        if "kernel_audit" not in each.name and each.suffix != ".pth":
            (libraries / each.name).symlink_to(each)
    environment = {**os.environ, "PYTHONPATH": str(libraries)}
    absent = subprocess.run([python, "-c", "import kernel_audit"], env=environment, capture_output=True, text=True)
    assert "No module named 'kernel_audit'" in absent.stderr
    done = subprocess.run([python, ROOT / script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert sys.prefix not in done.stdout
