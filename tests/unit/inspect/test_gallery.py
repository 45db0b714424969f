"""Kernels that ship inside JAX, unmodified: what is said of them, the same on another version where the source is shared."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from gallery_facts import GALLERY, facts

ROOT = Path(__file__).parents[3]
NAMES = sorted(each.stem for each in GALLERY.glob("*.py"))
OWN_SOURCE = {"splash_attention", "paged_attention"}  # each version of JAX has its own
BELONG_TO_A_VERSION = {"digest", "jax_version"}


def test_the_gallery_is_the_one_that_was_asked_for():
    wanted = {"flash_attention", "splash_attention", "megablox_gmm", "matmul", "paged_attention", "softmax"}
    assert {*wanted, "layer_norm", "rms_norm"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_result_is_covered_and_nothing_is_out_of_range(name: str):
    for kernel in facts(name):
        ownership = kernel["ownership"]
        # A Triton kernel may get a whole result in every program; then its stores say who owns what, and no index map.
        known = (0, 0) if ownership["proof"] != "whole-array" else (None, None)
        assert (ownership["uncovered"], ownership["out_of_range"]) == known, kernel["name"]
        assert ownership["proof"] == "enumerated" or kernel["program"].endswith("/gradient")
        assert kernel["grid"] and kernel["programs"] > 0 and kernel["buffer_model_bytes"] > 0
        assert kernel["padded_elements"] != 0 and set(kernel["bytes"]) >= {"moved", "floor", "claimed", "clipped"}
        assert kernel["bytes"]["floor"] > 0


def test_the_estimate_of_flash_attention_is_found_wrong():
    forward = facts("flash_attention")[0]
    assert forward["bytes"]["claimed"] == 4 * 8 * 2048 * 128 * 2  # q, k, v and the result once each
    assert forward["bytes"]["moved"] == (2 + 2 * 4) * 8 * 2048 * 128 * 2  # k and v once for each of four blocks of q
    assert [each["code"] for each in forward["findings"]] == ["cost-estimate-false"]


def test_backward_kernels_are_read():
    names = {each["name"] for each in facts("flash_attention") if each["program"].endswith("/gradient")}
    assert {"_flash_attention_dkv_kernel", "_flash_attention_dq_kernel"} <= names


@pytest.mark.slow
def test_another_jax_says_the_same(other_python: str):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    script = [other_python, "-W", "ignore", str(Path(__file__).parent / "gallery_facts.py")]
    done = subprocess.run(script, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    others = json.loads(done.stdout)
    assert sorted(others) == NAMES
    for name in set(NAMES) - OWN_SOURCE:
        assert _shared(others[name]) == _shared(facts(name)), name


def _shared(kernels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in each.items() if key not in BELONG_TO_A_VERSION} for each in kernels]
