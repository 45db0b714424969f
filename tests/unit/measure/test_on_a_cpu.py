"""A real measurement of a program without a kernel on this CPU: what its receipt says, and that it decides nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_audit.evidence import contradictions, read_receipts
from kernel_audit.records import RECEIPT

AUDIT = """
import jax.numpy as jnp

from kernel_audit import audit, exact, step_time


def plain(x):
    return x + x


def twice(x):
    return 2 * x


audit(name="ordinary", candidate=twice, baselines=[plain], args=["x: f32[m=512, n=512]"], results=["out: f32[m, n]"],
      vary={"m": any}, agreement=exact(), worth=step_time(None, 0.02), targets=["gpu:h200"])
"""


@pytest.mark.slow
def test_a_receipt_of_a_cpu_claims_nothing_of_a_target(tmp_path: Path):
    (tmp_path / "own.py").write_text(AUDIT)
    options = ["--target", "cpu", "--processes", "8", "--pairs", "40", "--out", "out", "--json"]
    command = [sys.executable, "-m", "kernel_audit", "measure", "own.py", *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    (receipt,) = read_receipts(tmp_path / "out")
    assert len(json.loads(done.stdout)["receipts"]) == 1
    assert (receipt.kind, receipt.target, receipt.session.scope.claims) == (RECEIPT, "cpu", "host-only")
    assert contradictions(receipt) == []
    assert {each.kind for each in receipt.ceilings} == {"copy", "matrix-product"}
    assert {each.role for each in receipt.checks} == {"candidate", "baseline"}
    assert all(check.differing == 0 and check.checked for each in receipt.session.processes for check in each.checks)
    for private in (str(tmp_path), str(Path.home())):
        assert private not in done.stdout
