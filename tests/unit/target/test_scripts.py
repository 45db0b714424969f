"""The documented command lines of the target runners, typed as they stand, on a machine without a target."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MODEL = "projects/kernel-audit/my_model.py"
DOCUMENTED = (
    f"--implementation {MODEL} --kernel fused --shape 257 513 --block 8 128 --dtype float32",
    f"--implementation {MODEL} --kernel pipeline --shape 257 513 --block 8 128 --buffers 2",
    f"--implementation {MODEL} --kernel pipeline --shape 257 513 --block 16 256 --buffers 3 --synchronous",
)


def typed(script: str, line: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command run from the top folder, as it would be in a checkout where nothing is installed."""
    kept = {key: value for key, value in os.environ.items() if key not in ("JAX_PLATFORMS", "PYTHONPATH")}
    return subprocess.run(
        [sys.executable, f"projects/kernel-audit/{script}", *line.split()],
        cwd=ROOT,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def refused(done: subprocess.CompletedProcess[str], target: str) -> list[str]:
    """The lines of the one error."""
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"target: no {target} to run on")
    assert [each.split()[0] for each in lines[1:]].count("got") == 1
    assert all(each.startswith("  ") for each in lines[1:])
    return lines


@pytest.mark.parametrize("line", DOCUMENTED)
def test_a_documented_line_without_a_tpu(line):
    lines = refused(typed("target_tpu.py", line), "TPU")
    assert "  got       backend 'cpu'" in lines


def test_a_process_that_is_kept_from_the_target():
    lines = refused(typed("target_tpu.py", DOCUMENTED[0], JAX_PLATFORMS="cpu"), "TPU")
    assert "  settled   JAX_PLATFORMS = cpu" in lines
    assert any("JAX_PLATFORMS not set to another" in each for each in lines)


@pytest.mark.slow
@pytest.mark.parametrize("line", DOCUMENTED)
def test_a_documented_line_in_a_process_that_is_kept_from_the_target(line):
    refused(typed("target_tpu.py", line, JAX_PLATFORMS="cpu"), "TPU")


@pytest.mark.slow
def test_a_process_whose_target_cannot_be_started():
    """JAX is told to use a TPU and finds none: the same error, not JAX's traceback."""
    refused(typed("target_tpu.py", DOCUMENTED[0], JAX_PLATFORMS="tpu"), "TPU")


@pytest.mark.slow
@pytest.mark.parametrize("line", DOCUMENTED)
def test_a_documented_line_without_a_gpu(line):
    refused(typed("target_gpu.py", line), "GPU")
