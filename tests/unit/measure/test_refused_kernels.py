"""A kernel that asks to be interpreted also where the target is: refused before anything is allocated on a device."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_audit.conduct import Question, evaluate
from kernel_audit.conduct.question import roots_of
from kernel_audit.errors import TargetError
from kernel_audit.matrix.laboratory import PRELOAD, Limits
from kernel_audit.measure.comparison import comparisons_of
from kernel_audit.measure.prepared import Preparing, Ready
from kernel_audit.target.described import described_target
from kernel_audit.worker import Pool

AUDIT = """
import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from kernel_audit import audit, step_time

def plain(x): return x * 2

def body(x_ref, out_ref): out_ref[...] = x_ref[...] * 2

@audit(baselines=[plain], args=["x: f32[m=16, n=128]"], results=["out: f32[m, n]"], worth=step_time(None, 0.02))
def twice(x):
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=INTERPRET)(x)
"""


def prepared(tmp_path: Path, interpret: str) -> list[Ready]:
    file = tmp_path / "stated.py"
    file.write_text(AUDIT.replace("INTERPRET", interpret))
    question = Question(audit=str(file))
    target = described_target("tpu:v5e")
    with Pool(size=1, preload=PRELOAD) as pool:
        audit, _ = evaluate(question, pool, tmp_path / "audit")
        preparing = Preparing(pool, tmp_path / "work", roots_of(question), Limits(60.0), audit)
        return preparing.ready(target, comparisons_of(audit, target.name))


@pytest.mark.parametrize("interpret", ["True", "pltpu.InterpretParams()"])
def test_a_simulation_of_the_target_is_not_timed_there(interpret: str, tmp_path: Path):
    with pytest.raises(TargetError, match="a simulation is never timed"):
        prepared(tmp_path, interpret)


def test_a_kernel_that_is_interpreted_elsewhere_only_is_exported(tmp_path: Path):
    (ready,) = prepared(tmp_path, "jax.default_backend() != 'tpu'")
    assert [each.refused for each in ready.programs] == ["", ""]
