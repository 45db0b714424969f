"""The documented commands, typed as they stand."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_audit.course.checker import Checker
from kernel_audit.course.promises import WANTED

TOP = Path(__file__).parents[3]
CHECK = "projects/kernel-audit/tests/check.py"


def _run(*arguments: str, top: Path = TOP) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, CHECK, *arguments], cwd=top, env=environment, capture_output=True, text=True, timeout=500
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An unpacked archive: no `.git`, nothing installed from it, a fresh copy of the starter as the reader's file."""
    top = tmp_path_factory.mktemp("archive")
    for name in ("src", "projects"):
        shutil.copytree(
            TOP / name, top / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "my_model.py")
        )
    home = top / "projects" / "kernel-audit"
    shutil.copy(home / "starter" / "model.py", home / "my_model.py")
    return top


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    made = Checker(tmp_path_factory.mktemp("checker"), workers=1)
    yield made
    made.close()


def test_starter_fails_at_the_first_unmet_promise(checkout: Path) -> None:
    asked = ("--stage", "all", "--impl", "projects/kernel-audit/my_model.py")
    done = _run(*asked, top=checkout)
    lines = done.stdout.splitlines()
    failed = [each for each in lines if each.startswith("FAIL")]
    assert done.returncode == 1 and done.stderr == ""
    assert len(failed) == 1 and "stage 1: blocked_axpy" in failed[0] and "(my_model.py:" in failed[0]
    assert "1 passed, 1 failed" in lines
    assert "Traceback" not in done.stdout and "last logical row" in done.stdout
    assert lines[-1].startswith("What a pass is not") and "speed" in lines[-1]


def test_requests_that_cannot_be_honoured(tmp_path: Path) -> None:
    borrowed = tmp_path / "my_model.py"
    borrowed.write_text("from kernel_audit.kernels.blocked_axpy import blocked_axpy\n")
    for arguments, words in (
        (("--implementation", "nowhere.py"), "no such file"),
        (("--implementation", str(borrowed), "--stage", "1"), "takes its kernels from somewhere else"),
        (("--implementation", "solution", "--stage", "4"), "--stage"),
        ((), "--implementation"),
    ):
        done = _run(*arguments)
        assert done.returncode == 2 and words in done.stderr and done.stdout == "", done


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import jax\n\nraise KeyError('no')\n", "raised KeyError: 'no' (my_model.py:3)"),
        ("x = 1\ndef f(:\n", "raised SyntaxError: "),
        ("import os\n\nos._exit(0)\n", "the file can be imported: the worker crashed"),
        ("x = 1\n", "the file has a function blocked_axpy: there is none"),
        ("def blocked_axpy(x, y):\n    return x\n", "as documented: (x, y)"),
    ],
)
def test_a_file_without_the_function_is_told_with_its_line(
    text: str, words: str, checker: Checker, tmp_path: Path
) -> None:
    path = tmp_path / "my_model.py"
    path.write_text(text)
    broken = [each.text for each in checker.check(path, WANTED[0]).checks if each.seen]
    assert broken and words in broken[0], broken


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["1", "2", "3", "all"])
def test_solution_keeps_every_promise(stage: str) -> None:
    done = _run("--implementation", "solution", "--stage", stage)
    assert done.returncode == 0, done.stdout
    assert any(each.endswith(" passed, 0 failed") for each in done.stdout.splitlines())
