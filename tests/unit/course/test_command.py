"""The documented commands, typed as they stand."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
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
    notes, borrowed = tmp_path / "notes.txt", tmp_path / "my_model.py"
    notes.write_text("x = 1\n")
    borrowed.write_text("from kernel_audit.kernels.blocked_axpy import blocked_axpy\n")
    for arguments, words in (
        (("--implementation", "nowhere.py"), "nothing there"),
        (("--implementation", str(notes)), "a Python file (.py)"),
        (("--implementation", str(tmp_path)), "a folder"),
        (("--implementation", "solution", "--workers", "0"), "from 1 to 64, not '0'"),
        (("--implementation", "solution", "--workers", "-3"), "--workers"),
        (("--implementation", "solution", "--workers", "65"), "from 1 to 64"),
        (("--implementation", str(borrowed), "--stage", "1"), "takes its kernels from somewhere else"),
        (("--implementation", "solution", "--stage", "4"), "--stage"),
        ((), "--implementation"),
    ):
        done = _run(*arguments)
        assert done.returncode == 2 and words in done.stderr and done.stdout == "", done


def _started(temporary: Path) -> subprocess.Popen[str]:
    """The checker at work on the solution, in a folder of its own."""
    before = set(temporary.glob("kernel-audit-*/*"))
    process = subprocess.Popen(
        [sys.executable, CHECK, "--implementation", "solution", "--stage", "1"],
        cwd=TOP,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline().startswith("checking model.py")
    until = time.monotonic() + 60
    while not any(each not in before for each in temporary.glob("kernel-audit-*/*")) and time.monotonic() < until:
        time.sleep(0.05)
    return process


@pytest.mark.parametrize(
    "number",
    [signal.SIGTERM, *(pytest.param(each, marks=pytest.mark.slow) for each in (signal.SIGHUP, signal.SIGINT))],
)
def test_told_to_stop_it_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    process = _started(tmp_path)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "interrupted\n")
    assert list(tmp_path.glob("kernel-audit-*")) == []


def test_what_a_killed_one_left_is_swept_by_the_next(tmp_path: Path) -> None:
    killed = _started(tmp_path)
    killed.kill()
    killed.communicate(timeout=60)
    (left,) = tmp_path.glob("kernel-audit-*")
    process = _started(tmp_path)
    assert not left.exists()
    process.terminate()
    process.communicate(timeout=60)


@pytest.mark.slow
def test_a_reader_who_has_gone_ends_it_in_order(tmp_path: Path) -> None:
    process = _started(tmp_path)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, said = process.communicate(timeout=300)
    assert (process.returncode, said) == (141, "")
    assert list(tmp_path.glob("kernel-audit-*")) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import jax\n\nraise KeyError('no')\n", "raised KeyError: 'no' (my_model.py:3)"),
        ("x = 1\ndef f(:\n", "(my_model.py:2)"),
        ("x = 1\n\0\n", "raised SyntaxError: source code string cannot contain null bytes"),
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
    assert "(loading.py" not in broken[0] and ":None" not in broken[0]


@pytest.mark.parametrize(
    "stage",
    [
        pytest.param(each, marks=pytest.mark.slow if each == "all" else pytest.mark.exhaustive)
        for each in ("1", "2", "3", "all")
    ],
)
def test_solution_keeps_every_promise(stage: str) -> None:
    done = _run("--implementation", "solution", "--stage", stage)
    assert done.returncode == 0, done.stdout
    assert any(each.endswith(" passed, 0 failed") for each in done.stdout.splitlines())
