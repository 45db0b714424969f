"""What the measuring half needs to be installed, shown with everything else blocked; and the script as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from device_machine import importing

ROOT = Path(__file__).parents[3]
BARE = importing(
    """
import kernel_audit.kernels.audits
import kernel_audit.kernels.regression_gradient, kernel_audit.kernels.regression_triton, kernel_audit.kernels.triton_axpy
import kernel_audit.kernels.triton_bias_relu, kernel_audit.kernels.pipelined_axpy, kernel_audit.kernels.fused_bias_relu
import kernel_audit.measure.campaign, kernel_audit.measure.device_job, kernel_audit.measure.session_job
import kernel_audit.measure.reference_job, kernel_audit.target.export_job, kernel_audit.matrix.oracle_job
import kernel_audit.matrix.lift_job, kernel_audit.worker.unconfined
""",
    more=", jax.experimental.pallas.triton",
)


def bare(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BARE, *arguments], capture_output=True, text=True, timeout=120)


def test_a_measurement_needs_five_packages():
    done = bare()
    assert (done.stdout, done.stderr) == ("imported\n", "")


@pytest.mark.slow
def test_the_test_above_can_fail():
    assert "not on a device machine: click" in bare("click").stderr


def test_the_parent_of_a_measurement_imports_no_jax():
    code = "import sys, kernel_audit.measure.campaign, kernel_audit.conduct.measuring; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_script_says_its_plan_without_a_device():
    command = [sys.executable, str(ROOT / "scripts" / "device-receipts"), "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stderr == ""
    for line in (each for each in done.stdout.splitlines() if each.startswith("on a ")):
        assert int(line.split("about ")[1].split(" s")[0]) <= 480


@pytest.mark.slow
def test_the_script_measures_nothing_without_a_device(tmp_path: Path):
    command = [sys.executable, str(ROOT / "scripts" / "device-receipts"), "--out", str(tmp_path / "receipts")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing is simulated instead" in done.stderr and not (tmp_path / "receipts").exists()
