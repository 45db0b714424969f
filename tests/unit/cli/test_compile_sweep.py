"""`compile --sweep`: a planted crossover is found, and another audit has none in range. No device is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kernel_audit.contract import Audit
from kernel_audit.errors import AuditError
from kernel_audit.measure.campaign import audit_of
from kernel_audit.measure.sweeps import lines_of, sweep_sizes

PLANTED = """
import jax.numpy as jnp

from kernel_audit import audit, step_time


def once_and_a_table(x, table):
    return x * 2 + jnp.sum(table)


def twice(x, table):
    return x / jnp.sum(x)


def more(x, table):
    return x / jnp.sum(x) + jnp.sum(table)


common = dict(args=["x: f32[n=4096, d=128]", "table: f32[t=2097152]"], results=["out: f32[n, d]"], vary={"n": any},
              targets=["tpu:v5e"], worth=step_time(None, 0.02))
audit(name="planted", candidate=once_and_a_table, baselines=[twice], **common)
audit(name="twice-there", candidate=more, baselines=[twice], **{**common, "targets": ["tpu:v5e", "tpu:v6e"]})
audit(name="never", candidate=more, baselines=[twice], **common)
"""


def sizes(audit: Audit, *asked: str) -> list[dict[str, int]]:
    return sweep_sizes(audit, asked)


def test_sizes_double_or_are_listed():
    audit = audit_of("regression")
    assert [each["n"] for each in sizes(audit, "n=2**10:2**13")] == [1024, 2048, 4096, 8192]
    assert sizes(audit, "n=4096", "d=128,256") == [{"n": 4096, "d": 128}, {"n": 4096, "d": 256}]
    assert lines_of(sizes(audit, "n=1,2", "d=3,4"), "n") == [{"d": 3}, {"d": 4}]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("m=1:8", "no dimension"),
        ("n=1,1", "one twice"),
        ("n=many", "no number"),
        ("n=2**99", "out of range"),
        ("n=8:4", "without sizes"),
        ("d=2048", "does not admit"),
        ("n", "no dimension"),
    ],
)
def test_a_sweep_that_cannot_be_honoured_says_why(asked: str, said: str):
    with pytest.raises(AuditError, match=said):
        sizes(audit_of("regression"), asked)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("libtpu") is None, reason="the TPU's compiler is not installed here")
def test_a_planted_crossover_is_found_and_another_has_none(tmp_path: Path):
    (tmp_path / "planted.py").write_text(PLANTED)

    def swept(name: str) -> dict[str, str]:
        command = [
            sys.executable,
            "-m",
            "kernel_audit",
            "compile",
            f"planted.py:{name}",
            "--sweep",
            "n=1024:65536",
            "--json",
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return {each["figure"]: each["says"] for each in json.loads(done.stdout)["sweeps"]}

    # Twice moves 3 n rows of 512 bytes, once 2 n and 8 MiB: even at n = 16384, and fewer from there on.
    assert swept("planted")["derived bytes"] == "fewer bytes from n between 16384 and 32768"
    assert swept("twice-there")["derived bytes"] == swept("never")["derived bytes"]
    assert swept("never")["derived bytes"] == "none in range: not fewer bytes from n = 1024 to 65536"
