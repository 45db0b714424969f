"""Bytes are derived twice and agree exactly, in whole blocks: from the program, and from copies in the interpreter."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from derived_kernels import CASES, both

ROOT = Path(__file__).parents[3]
QUICK = ("pipelined axpy, synchronous", "bias and ReLU", "tails in a loop", "gmm")


@pytest.mark.parametrize("name", QUICK)
def test_both_derivations_agree(name: str):
    derived, counted = both(name)
    assert derived == counted > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [each for each in CASES if each not in QUICK])
def test_both_derivations_agree_on_every_kernel(name: str):
    derived, counted = both(name)
    assert derived == counted > 0


def test_there_are_ten_kernels_and_flash_attention_among_them():
    assert len(CASES) >= 10 and "flash attention" in CASES


@pytest.mark.slow
def test_both_derivations_agree_on_another_jax(other_python: str):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "JAX_PLATFORMS": "cpu"}
    script = [other_python, "-W", "ignore", str(Path(__file__).parent / "derived_kernels.py")]
    done = subprocess.run(script, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found) == list(CASES)
    assert [name for name, (derived, counted) in found.items() if derived != counted or not counted] == []
