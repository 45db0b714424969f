"""The script that holds regions against planted work: each plant is found where it is. Its bounds are for a quiet machine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOUND = re.compile(
    r"costs +(-?[\d.]+) ms .*; (-?\d+)% of it found in ([\w-]+); most elsewhere ([+-][\d.]+)% of the step"
)


@pytest.mark.exhaustive  # times of a machine that may be busy
def test_every_plant_moves_its_own_region_most() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "attribution"), "--rounds", "6"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 1), done.stderr
    wall = float(re.search(r"unmodified step ([\d.]+) ms", done.stdout)[1])
    found = FOUND.findall(done.stdout)
    assert [each[2] for each in found] == ["local-arithmetic", "input-staging", "communication", "padding-and-cropping"]
    for cost, share, region, elsewhere in found:
        moved = float(cost) * float(share) / 100 / wall
        assert moved > abs(float(elsewhere)) / 100, f"{region}: {done.stdout}"
