"""A whole bundle, traces included, tells neither who made it nor where."""

from __future__ import annotations

import gzip
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kernel_audit
from kernel_audit.profile import host_names

SOURCE = Path(kernel_audit.__file__).parents[1]
EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.slow
def test_no_file_of_a_bundle_tells_who_made_it_or_where(tmp_path: Path) -> None:
    """`run` of an audit with a complete step, under a random user, home and checkout; every file unpacked and searched."""
    user, home, checkout = (f"x{secrets.token_hex(6)}" for _ in range(3))
    place = tmp_path / checkout / user / home
    place.mkdir(parents=True)
    shutil.copytree(SOURCE, place / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    shutil.copy(EXAMPLES / "mlp.py", place)
    named = {"USER": user, "LOGNAME": user, "HOME": str(place), "PYTHONPATH": str(place / "src")}
    command = [sys.executable, "-m", "kernel_audit", "run", "mlp.py", "--quick", "--out", "bundle"]
    done = subprocess.run(command, cwd=place, env={**os.environ, **named}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    files = {
        each.relative_to(place / "bundle").as_posix(): each for each in (place / "bundle").rglob("*") if each.is_file()
    }
    assert {"workload.json", "profile/profile.json", "profile/rank-0/trace.xplane.pb"} <= set(files)
    for name, file in files.items():
        data = file.read_bytes()
        data = gzip.decompress(data) if file.suffix == ".gz" else data
        for word in (user, home, checkout, str(tmp_path)):
            assert word.encode() not in data, f"{word} in {name}"
    assert host_names(files["profile/rank-0/trace.xplane.pb"].read_bytes()) == []
