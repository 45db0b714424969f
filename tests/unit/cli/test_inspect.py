"""`kernel-audit inspect` as a user calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from kernel_audit.records import KernelInspection

ROOT = Path(__file__).parents[3]

FACTORY = """
import functools
import jax
from jax import default_backend
from jax.experimental import pallas as pl

from kernel_audit import audit, built_by


def make(*, m, block):
    assert m == 32
    return functools.partial(_kernel, block=block)


def _kernel(x, *, block):
    def body(x_ref, out_ref):
        out_ref[...] = x_ref[...] * 2.0

    spec = pl.BlockSpec((block, 128), lambda i: (i, 0))
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    interpret = default_backend() != "tpu"
    call = pl.pallas_call(body, grid=(32 // block,), in_specs=[spec], out_specs=spec, out_shape=out, interpret=interpret)
    call(x + 1)
    return call(x)


audit(name="made", candidate=built_by(make), args=["x: f32[m=32, n=128]"], tuning={"block": [8, 16]})
"""


def inspect(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kernel_audit", "inspect", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def factory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("factory") / "made.py"
    file.write_text(FACTORY)
    return file


def test_every_configuration_and_dtype_of_an_audit_is_read(tmp_path: Path):
    done = inspect("axpy", "--json", "--svg", str(tmp_path / "drawings"))
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    kernels = msgspec.convert(told["kernels"], list[KernelInspection])
    assert len(told["programs"]) == len(kernels) == 2 * 2 * 2 * 2
    first = kernels[0]
    assert (first.grid, first.programs, first.ownership.uncovered, first.padded_elements) == ([33, 5], 165, 0, 168960)
    assert (first.bytes.moved, first.bytes.claimed, first.findings) == (3 * 168960 * 4, None, [])
    assert str(ROOT) not in done.stdout
    drawings = list((tmp_path / "drawings").glob("*.svg"))
    assert len(drawings) == 16
    assert ElementTree.parse(drawings[0]).getroot().tag.endswith("svg")


def test_a_made_candidate_without_baselines_is_read(factory: Path):
    done = inspect(str(factory), "--target", "tpu:v5e")
    assert done.returncode == 0, done.stderr
    assert "4: 4 programs" in done.stdout and "2: 2 programs" in done.stdout
    assert "candidate-reads-backend" in done.stdout
    assert done.stdout.count("kernel-not-in-program") == 2
    assert "32 x" not in done.stderr


@pytest.mark.parametrize("command", ["run", "check"])
def test_it_is_not_decided_about(command: str, factory: Path, tmp_path: Path):
    arguments = [sys.executable, "-m", "kernel_audit", command, str(factory)]
    if command == "run":
        arguments += ["--out", str(tmp_path / "bundle")]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "an audit that can be inspected and compiled only" in done.stderr
    assert "audit 'made': baselines" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_target_that_is_not_described_is_refused_by_name():
    done = inspect("axpy", "--target", "tpu:v5")
    assert done.returncode == 2
    assert "no description of this target" in done.stderr and "did you mean 'tpu:v5p' or 'tpu:v5e'" in done.stderr


def test_a_candidate_that_raises_is_told(tmp_path: Path):
    file = tmp_path / "raising.py"
    file.write_text(FACTORY.replace("assert m == 32", "raise ValueError('no such block')"))
    done = inspect(str(file))
    assert done.returncode == 2
    assert "no program of this audit could be captured" in done.stderr
    assert "ValueError: no such block, at raising.py" in done.stderr
