"""What `kernel-audit measure` refuses, in 25 cases: exit code 2, nothing on stdout, no receipt. No option lifts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_audit.errors import TargetError

ROOT = Path(__file__).parents[3]
CASES_WANTED = 25

INTERPRETED = """
import jax
from jax.experimental import pallas as pl

from kernel_audit import audit, exact, step_time


def plain(x):
    return x + x


def twice(x):
    return 2 * x


def body(x_ref, out_ref):
    out_ref[...] = 2 * x_ref[...]


def kernel(x, *, mode="fast", interpret=True):
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=interpret)(x)


def simulating(x):
    from jax.experimental.pallas import tpu as pltpu

    return kernel(x, interpret=pltpu.InterpretParams())


def hidden(x):
    return jax.jit(kernel)(x)


common = dict(baselines=[plain], args=["x: f32[m=16, n=128]"], results=["out: f32[m, n]"], agreement=exact(),
              worth=step_time(None, 0.02))
audit(name="interpreted", candidate=kernel, targets=["tpu:v5e"], **common)
audit(name="simulate", candidate=kernel, targets=["tpu:v5e"], modes={"mode": ["simulate"]}, **common)
audit(name="simulating", candidate=simulating, targets=["tpu:v5e"], **common)
audit(name="hidden", candidate=hidden, targets=["gpu:h200"], **common)
audit(name="ordinary", candidate=twice, targets=["gpu:h200"], **common)
audit(name="for-nothing", candidate=twice, targets=[], **common)
audit(name="for-any", candidate=kernel, **common)
audit(name="without-worth", candidate=twice, baselines=[plain], args=["x: f32[m=16, n=128]"],
      results=["out: f32[m, n]"])
"""

NO_TARGET, NEVER, NOT_FOR = "nothing was run, and nothing is simulated instead", "never timed", "not for this target"
# name -> (arguments, environment, what is said)
CASES: dict[str, tuple[list[str], dict[str, str], str]] = {
    "no-tpu": (["axpy", "--target", "tpu"], {}, NO_TARGET),
    "no-gpu": (["axpy-gpu", "--target", "gpu"], {}, NO_TARGET),
    "no-gpu-for-the-regression": (["regression", "--target", "gpu"], {}, NO_TARGET),
    "no-tpu-for-the-regression": (["regression", "--target", "tpu"], {}, NO_TARGET),
    "platforms-cpu": (["axpy", "--target", "tpu"], {"JAX_PLATFORMS": "cpu"}, "JAX_PLATFORMS = cpu"),
    "platforms-cpu-gpu": (["axpy-gpu", "--target", "gpu"], {"JAX_PLATFORMS": "cpu"}, "JAX_PLATFORMS = cpu"),
    "platforms-of-another": (["axpy", "--target", "tpu"], {"JAX_PLATFORMS": "cuda"}, NO_TARGET),
    "platforms-that-lie": (["axpy-gpu", "--target", "gpu"], {"JAX_PLATFORMS": "cuda"}, NO_TARGET),
    "as-json": (["axpy", "--target", "tpu", "--json"], {}, NO_TARGET),
    "with-an-out": (["axpy", "--target", "tpu", "--out", "elsewhere"], {}, NO_TARGET),
    "with-a-sweep": (["axpy-gpu", "--target", "gpu", "--sweep", "m=16,32"], {}, NO_TARGET),
    "with-pairs": (["axpy", "--target", "tpu", "--pairs", "40", "--processes", "8"], {}, NO_TARGET),
    "wrong-target": (["axpy", "--target", "gpu"], {}, NOT_FOR),
    "wrong-target-the-other-way": (["axpy-gpu", "--target", "tpu"], {}, NOT_FOR),
    "wrong-target-in-a-plan": (["axpy", "--target", "gpu", "--dry-run"], {}, NOT_FOR),
    "for-no-target": (["own.py:for-nothing", "--target", "tpu"], {}, NOT_FOR),
    "interpreted-on-a-cpu": (["bias-relu", "--target", "cpu"], {}, NEVER),
    "interpreted-on-a-cpu-gpu": (["bias-relu-gpu", "--target", "cpu"], {}, NEVER),
    "interpreted-of-ones-own": (["own.py:interpreted", "--target", "cpu"], {}, NEVER),
    "simulate-mode": (["own.py:simulate", "--target", "cpu"], {}, NEVER),
    "simulating-parameters": (["own.py:simulating", "--target", "cpu"], {}, NEVER),
    "hidden-in-a-jit": (["own.py:hidden", "--target", "cpu", "--json"], {}, NEVER),
    "put-in-its-place": (["own.py:ordinary", "--target", "cpu", "--candidate", "own.py:kernel"], {}, NEVER),
    "without-a-worth": (["own.py:without-worth", "--target", "cpu"], {}, "worth"),
    "no-such-target": (["axpy", "--target", "simulator"], {}, "simulator"),
}
QUICK = ("no-tpu", "wrong-target", "interpreted-of-ones-own", "no-such-target")


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("refusals")
    (folder / "own.py").write_text(INTERPRETED)
    return folder


def measure(home: Path, arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if key != "JAX_PLATFORMS"}
    command = [sys.executable, "-m", "kernel_audit", "measure", *arguments]
    return subprocess.run(command, cwd=home, env={**clean, **environment}, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    "case", [pytest.param(each, marks=() if each in QUICK else pytest.mark.slow) for each in CASES]
)
def test_refused_with_nothing_on_stdout_and_no_receipt(home: Path, case: str):
    arguments, environment, said = CASES[case]
    done = measure(home, arguments, environment)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and "Traceback" not in done.stderr
    assert not list(home.rglob("*.json"))


def test_there_are_as_many_cases_as_were_promised():
    assert len(CASES) == CASES_WANTED


def test_a_plan_is_listed_without_a_device(home: Path):
    done = measure(home, ["regression", "--target", "gpu", "--dry-run"], {})
    assert done.returncode == 0 and done.stderr == ""
    assert "program float32 n=1048576,d=512: 2 candidates, 3 baselines" in done.stdout
    assert "nothing was run" in done.stdout and " s; may claim " in done.stdout
    planned = json.loads(measure(home, ["regression", "--target", "gpu", "--dry-run", "--json"], {}).stdout)
    assert planned["about_s"] > 0 and len(planned["comparisons"]) == 4


def test_a_plan_counts_the_twins_of_the_candidate(tmp_path: Path):
    lines = [
        "from kernel_audit import audit, step_time",
        "def plain(x): return x + x",
        "def twice(x, *, buffers=2): return 2 * x",
        "def flat(x): return 2 * x",
        'stated = {"args": ["x: f32[m=8]"], "worth": step_time(None, 0.02), "targets": ["gpu:h200"], "baselines": [plain]}',
        'audit(name="without", candidate=twice, **stated)',
        'audit(name="with", candidate=twice, ablations={"flat": flat, "one-buffer": {"buffers": 1}}, **stated)',
    ]
    (tmp_path / "own.py").write_text("\n".join(lines))
    options = ["--target", "gpu", "--dry-run"]
    assert "1 candidates, 1 baselines, 2 ablations" in measure(tmp_path, ["own.py:with", *options], {}).stdout
    without, twins = (
        json.loads(measure(tmp_path, [f"own.py:{name}", *options, "--json"], {}).stdout) for name in ("without", "with")
    )
    assert (without["ablations"], twins["ablations"]) == ([], ["flat", "one-buffer"])
    assert twins["about_s"] > without["about_s"]


@pytest.mark.slow
def test_python_refuses_as_the_command_does(tmp_path: Path):
    from kernel_audit.measure import Measuring
    from kernel_audit.measure.campaign import audit_of
    from kernel_audit.worker.unconfined import Unconfined

    measuring = Measuring(audit_of("axpy"), "tpu", Unconfined(), Unconfined(), tmp_path, [tmp_path], {})
    with pytest.raises(TargetError, match="nothing is simulated instead"):
        measuring.measure()
