"""A command that nobody reads any more, or that is told to stop, ends in order."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from course_scripts import ROOT

# Scripts whose output is longer than what a reader takes who goes after one line.
COMMANDS = {
    "explain": [sys.executable, "-m", "kernel_audit", "explain"],
    "lesson": [sys.executable, str(ROOT / "examples" / "lesson.py"), "--out", "lesson"],
    "assessment": [sys.executable, str(ROOT / "assessments" / "check_assessments.py")],
}


SLOW = ("lesson", "assessment")
# Runs a command with a pipe of one page, so that a whole list of codes does not fit into it, and goes after its first line.
READER = """
import fcntl, subprocess, sys

process = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, 4096)
process.stdout.readline()
process.stdout.close()
process.stdout = None
sys.stderr.buffer.write(process.communicate()[1])
sys.exit(process.returncode)
"""


@pytest.mark.parametrize(
    "command",
    [pytest.param(COMMANDS[each], id=each, marks=pytest.mark.slow if each in SLOW else ()) for each in COMMANDS],
)
def test_a_reader_who_goes_is_no_fault_and_no_verdict(command: list[str], tmp_path: Path) -> None:
    asked = [sys.executable, "-c", READER, *command]
    done = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_check_that_is_told_to_stop_leaves_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kernel_audit", "check", "axpy"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 60
    while not any(tmp_path.glob("kernel-audit-*/*")) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and said.endswith("interrupted\n") and "Traceback" not in said
    assert list(tmp_path.glob("kernel-audit-*")) == []
