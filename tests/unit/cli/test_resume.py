"""An audit that was killed leaves no process and goes on to the same end; Ctrl-C is told from a kill."""

from __future__ import annotations

import random
import signal
import time

import pytest

ASKED = ("run", "doubling.py", "--out", "bundle", "--late-seed", "5")


def killed_after(shell, seconds: float) -> None:
    process = shell.start(*ASKED)
    time.sleep(seconds)
    process.kill()
    process.communicate()


def killed_while_checking(shell, number: int = signal.SIGKILL):
    """Ends a run as soon as it has frozen its question; what it said, and how it ended."""
    process = shell.start(*ASKED)
    until = time.monotonic() + 60
    while not (shell.home / "bundle.partial" / "request.json").exists():
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(number)
    said = process.communicate(timeout=60)
    return process.returncode, said[1]


def completes_the_same(shell, finished_once, records) -> None:
    done = shell(*ASKED, "--resume")
    assert done.returncode == 0
    assert records(shell.home / "bundle") == records(finished_once[0].home / "bundle")
    assert shell("verify", "bundle").returncode == 0
    assert not (shell.home / "bundle.partial").exists()
    assert shell.left() == []


def test_killed_in_the_middle(shell, finished_once, records):
    killed_while_checking(shell)
    assert shell.left() == []
    refused = shell(*ASKED)
    assert refused.returncode == 2
    assert "an interrupted audit is here" in refused.stderr and "--resume" in refused.stderr
    completes_the_same(shell, finished_once, records)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.2, 0.75])
def test_killed_at_a_moment(shell, finished_once, records, share):
    killed_after(shell, share * finished_once[2])
    assert shell.left() == []
    completes_the_same(shell, finished_once, records)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_killed_at_a_random_moment_and_once_more(shell, finished_once, records, number):
    moments = random.Random(number)
    killed_after(shell, moments.uniform(0, 1.1) * finished_once[2])
    assert shell.left() == []
    if number % 2 and not (shell.home / "bundle").exists():
        process = shell.start(*ASKED, "--resume")
        time.sleep(moments.uniform(0, 1) * finished_once[2])
        process.kill()
        process.communicate()
        assert shell.left() == []
    completes_the_same(shell, finished_once, records)


def test_interrupted_by_hand(shell):
    code, said = killed_while_checking(shell, signal.SIGINT)
    assert code == 130
    assert said.splitlines()[-1] == "interrupted" and "Traceback" not in said
    assert shell.left() == []
    assert (shell.home / "bundle.partial" / "request.json").exists() and not (shell.home / "bundle").exists()


def test_another_question_is_not_taken_up(shell):
    killed_while_checking(shell)
    request = (shell.home / "bundle.partial" / "request.json").read_bytes()
    done = shell(*ASKED, "--resume", "--cells", "generic")
    assert done.returncode == 2
    assert "the interrupted audit asked another question" in done.stderr and "--cells" in done.stderr
    with (shell.home / "doubling.py").open("a") as stream:
        stream.write("\n# one line more\n")
    done = shell(*ASKED, "--resume")
    assert done.returncode == 2 and "changed: doubling.py" in done.stderr
    assert (shell.home / "bundle.partial" / "request.json").read_bytes() == request


@pytest.mark.slow
def test_nothing_to_resume_is_a_fresh_run(shell, finished_once, records):
    completes_the_same(shell, finished_once, records)
