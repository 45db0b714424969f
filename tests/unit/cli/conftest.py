"""The command line in a process of its own, on an audit of six cells, and what is left of its processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

AUDIT = """
import jax
from jax.experimental import pallas as pl

from kernel_audit import audit, exact, step_time, values


def plain(x):
    return x + x


def oracle(x):
    return x + x


def body(x_ref, out_ref):
    out_ref[...] = 2 * x_ref[...]


@audit(baselines=[plain], args=["x: f32[m=20]"], results=["out: f32[m]"], vary={"m": [20, 9]}, agreement=exact(),
       oracle=oracle, values=values("normal", "fresh"), worth=step_time(None, 0.02))
def double(x):
    block = pl.BlockSpec((8,), lambda i: (i,))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, out_shape=shape, grid=(pl.cdiv(x.shape[0], 8),), in_specs=[block], out_specs=block)(x)


def triple(x):
    block = pl.BlockSpec((8,), lambda i: (i,))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    grid = (pl.cdiv(x.shape[0], 8),)
    return pl.pallas_call(body, out_shape=shape, grid=grid, in_specs=[block], out_specs=block)(x) + x
"""


class Shell:
    """Runs `kernel-audit` in `home`; every process that comes of it carries a mark in its environment."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.mark = uuid.uuid4().hex
        self.environment = {**os.environ, "KERNEL_AUDIT_TEST": self.mark}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "kernel_audit", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        return subprocess.Popen(command, cwd=self.home, env=self.environment, text=True, **pipes)

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        assert "Traceback" not in out + err
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def left(self, within_s: float = 10.0) -> list[int]:
        """Processes that are still there after a while."""
        until = time.monotonic() + within_s
        while (pids := self._marked()) and time.monotonic() < until:
            time.sleep(0.05)
        return pids

    def _marked(self) -> list[int]:
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                environment = Path("/proc", name, "environ").read_bytes()
                alive = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[0] != "Z"
            except OSError:
                continue
            if alive and f"KERNEL_AUDIT_TEST={self.mark}".encode() in environment:
                found.append(int(name))
        return found


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "doubling.py").write_text(AUDIT, encoding="utf-8")
    return Shell(tmp_path)


@pytest.fixture(scope="session")
def finished_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Shell, subprocess.CompletedProcess[str], float]:
    """A shell whose `bundle` is finished, what its run said, and how many seconds it took. Not to be changed."""
    home = tmp_path_factory.mktemp("finished")
    (home / "doubling.py").write_text(AUDIT, encoding="utf-8")
    made = Shell(home)
    started = time.monotonic()
    done = made("run", "doubling.py", "--out", "bundle", "--late-seed", "5")
    return made, done, time.monotonic() - started


@pytest.fixture
def records() -> Callable[[Path], dict[str, bytes]]:
    """The files of a bundle that must not depend on how often it was interrupted."""

    def read(bundle: Path) -> dict[str, bytes]:
        names = ("audit.json", "cells.jsonl", "controls.jsonl", "decision.json")
        return {name: (bundle / name).read_bytes() for name in names}

    return read
