"""What a model does below Python reaches neither stdout nor the records: its process is seen to its end by another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("stubbed_runner.py")
KERNEL = """
import atexit, ctypes, os, sys, threading, time
import jax.numpy as jnp

{first}

def fused_bias_relu(x, bias, block=(8, 128), mode="interpret"):
    {then}
    total = x.astype(jnp.float32) + bias.astype(jnp.float32)
    return jnp.maximum(total, 0.0).astype(x.dtype)
"""


def start(folder: Path, first: str = "", then: str = "pass", *more: str) -> subprocess.Popen[str]:
    (folder / "my_model.py").write_text(KERNEL.format(first=first, then=then))
    line = "--kernel fused --shape 17 257 --block 8 128 --implementation my_model.py --out records"
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, SCRIPT, *line.split(), *more], cwd=folder, **pipes)


def run(folder: Path, *model: str) -> tuple[int, str, str]:
    process = start(folder, *model)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def failure_in(folder: Path) -> dict[str, str]:
    (path,) = (folder / "records").glob("*-failed-1.json")
    record = json.loads(path.read_text())
    assert record["outcome"] == "failed" and record["kernel"] == "fused_bias_relu"
    return record["failure"]


def alive(pid: int) -> bool:
    """Whether a process is there and not a zombie; 10 seconds to go."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
        except OSError:
            return False
        time.sleep(0.1)
    return True


ENDS = {
    "exit at import": ("os._exit(0)", "pass", "load", "exit code 0 and no result"),
    "exit when called": ("", "os._exit(0)", "run", "exit code 0 and no result"),
    "segmentation fault": ("ctypes.string_at(0)", "pass", "load", "signal 11 (SIGSEGV)"),
    "kills its group": ("os.killpg(0, 9)", "pass", "load", "signal 9 (SIGKILL)"),
    "interrupts itself": ("raise KeyboardInterrupt", "pass", "load", "KeyboardInterrupt"),
}
QUICK = {"exit at import"}


@pytest.mark.parametrize(
    ("first", "then", "stage", "said"),
    [pytest.param(*each, id=name, marks=[] if name in QUICK else pytest.mark.slow) for name, each in ENDS.items()],
)
def test_a_process_that_ends_itself_is_a_recorded_failure(first, then, stage, said, tmp_path):
    code, out, err = run(tmp_path, first, then)
    assert (code, out) == (1, ""), err
    failure = failure_in(tmp_path)
    assert failure["stage"] == stage and said in failure["got"] and said in err
    assert "Traceback" not in err


def test_whatever_is_written_below_python_is_not_on_stdout(tmp_path):
    first = (
        "os.write(1, b'written'); os.system('echo echoed'); atexit.register(print, 'at exit', flush=True)\n"
        "def late():\n    while True:\n        time.sleep(0.2)\n        print('late', flush=True)\n"
        "threading.Thread(target=late, daemon=True).start()"
    )
    code, out, err = run(tmp_path, first)
    assert code == 0, err
    assert json.loads(out)["outcome"] == "completed"
    assert "written" in err and "echoed" in err


@pytest.mark.slow
def test_a_process_that_a_model_leaves_ends_with_the_run(tmp_path):
    first = "left = os.fork()\nif left == 0:\n    time.sleep(1000)\nopen('left', 'w').write(str(left))"
    code, out, err = run(tmp_path, first)
    assert code == 0 and json.loads(out)["outcome"] == "completed", err
    assert not alive(int((tmp_path / "left").read_text()))


@pytest.mark.slow
def test_a_model_that_sleeps_ends_at_the_deadline(tmp_path):
    code, out, err = run(tmp_path, "time.sleep(1000)", "pass", "--deadline", "8")
    assert (code, out) == (1, ""), err
    assert failure_in(tmp_path)["got"] == "no result within 8 s"


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_told_to_stop_it_stops_with_a_line_and_leaves_nothing(number, tmp_path):
    process = start(tmp_path, "open('model', 'w').write(str(os.getpid()))\ntime.sleep(1000)")
    while not (tmp_path / "model").exists() or not (tmp_path / "model").read_text():
        assert process.poll() is None
        time.sleep(0.1)
    os.kill(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert not alive(int((tmp_path / "model").read_text()))
    assert list((tmp_path / "records").iterdir()) == []
