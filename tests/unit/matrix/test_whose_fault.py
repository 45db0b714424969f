"""Faults of the machine, of JAX or of the tool's own work are not the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_audit.conduct import Question, check
from kernel_audit.matrix.laboratory import Limits

HEAD = """
import jax
from jax.experimental import pallas as pl
from kernel_audit import audit, step_time

def doubled(x): return x * 2

def body(x_ref, out_ref): out_ref[...] = x_ref[...] * 2

"""
KERNEL = """
def kernel(x):
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)
"""


def decision_of(tmp_path: Path, arguments: str, memory_bytes: int = 8 << 30):
    file = tmp_path / "stated.py"
    file.write_text(f"{HEAD}@audit(baselines=[doubled], {arguments}, worth=step_time(None, 0.02)){KERNEL}")
    limits = Limits(30.0, memory_bytes)
    return check(Question(audit=str(file), quick=True, cells="normal", limits=limits), lambda *_: None).decision


def test_small_integers_are_judged_without_an_agreement(tmp_path: Path):
    decision = decision_of(tmp_path, 'args=["x: T[m=8, n=128]"], dtypes={"T": ["i8", "i32", "f8e4m3fn"]}')
    assert decision.decision == "await-target-evidence", decision.summary
    assert set(decision.counts) == {"agrees"}


def test_what_jax_cannot_read_back_is_not_the_kernels(tmp_path: Path):
    decision = decision_of(tmp_path, 'args=["x: f32[]"]')
    assert decision.decision == "await-target-evidence", decision.summary
    codes = {each.code for each in decision.findings}
    # A JAX that reads rank 0 back runs these cells as well.
    assert "not-captured" in codes or set(decision.counts) == {"agrees"}


@pytest.mark.slow
def test_memory_that_the_fixture_needs_is_not_the_kernels(tmp_path: Path):
    decision = decision_of(tmp_path, 'args=["x: f32[m=16384, n=4096]"]', memory_bytes=1 << 29)
    assert decision.decision is None
    assert "environment-failed" in {each.code for each in decision.findings}


def test_operands_that_are_too_large_for_any_cell_leave_nothing_shown(tmp_path: Path):
    decision = decision_of(tmp_path, 'args=["x: f32[m=40000, n=4096]"]')
    assert decision.decision is None, decision.summary
    assert decision.counts == {}
