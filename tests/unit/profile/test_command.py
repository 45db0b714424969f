"""`kernel-audit profile` from the outside: a record that holds, files that tell nothing of where they were made."""

from __future__ import annotations

import gzip
import json
import math
import os
import secrets
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from kernel_audit.evidence.privacy import private_text
from kernel_audit.profile import Attribution, host_names, read_trace
from kernel_audit.records import ProfileRecord, digest_file
from kernel_audit.records.profile import DISPATCH
from kernel_audit.statistics import median

HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src"
SMALL = ("profile", "small_step.py", "--devices", "2", "--steps", "10")


def tool(home: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(HERE / "small_step.py", home)
    command = [sys.executable, "-m", "kernel_audit", *arguments]
    settings = {**os.environ, "PYTHONPATH": str(SOURCE), **environment}
    return subprocess.run(command, cwd=home, env=settings, capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """(the folder of a profile, what was printed)."""
    home = tmp_path_factory.mktemp("home")
    done = tool(home, *SMALL, "--out", "profile")
    assert done.returncode == 0, done.stderr
    return home / "profile", done.stdout


def record_of(folder: Path) -> ProfileRecord:
    return msgspec.json.decode((folder / "profile.json").read_bytes(), type=ProfileRecord)


def test_the_regions_sum_to_the_wall_and_nothing_is_unmapped(out: tuple[Path, str]) -> None:
    record = record_of(out[0])
    assert len(record.traced.wall_ns) == 10
    for step, wall in enumerate(record.traced.wall_ns):
        total = math.fsum(each.time_ns[step] for each in record.regions)
        assert abs(total - wall) <= 1e-6 * wall
    assert record.mapping["unmapped"] == 0 and record.traced.unknown == []
    assert {each.name for each in record.regions if each.share > 0} >= {
        "local-arithmetic",
        "input-staging",
        "communication",
        DISPATCH,
    }


def test_warm_is_warm_and_apart_from_compiling(out: tuple[Path, str]) -> None:
    record = record_of(out[0])
    assert record.warm.compile_events == 0 and record.traced.compile_events == 0
    assert len(record.warm.wall_ns) == record.warm.synchronised == 50
    assert record.cold.compile_s > 10 * median(record.warm.wall_ns) / 1e9
    assert all(call <= wall for call, wall in zip(record.warm.dispatched_ns, record.warm.wall_ns, strict=True))


def test_operations_are_as_many_as_steps_and_devices_run(out: tuple[Path, str]) -> None:
    record = record_of(out[0])
    once = [each for each in record.operations if each.opcode == "all-reduce"]
    assert once and all(each.events == 10 * 2 for each in once)
    assert record.logical and record.target is None and record.devices == 2
    assert record.dims == {"n": 61, "d": 32, "l": 4}


def test_the_kept_files_are_those_of_the_record_and_read_alone(out: tuple[Path, str]) -> None:
    folder = out[0]
    record = record_of(folder)
    assert {each.name: each.digest for each in record.traced.files} == {
        f"rank-0/{name}": digest_file(folder / "rank-0" / name)
        for name in ("step.hlo.txt", "trace.json.gz", "trace.xplane.pb")
    }
    trace = read_trace(folder / "rank-0" / "trace.xplane.pb")
    attribution = Attribution((folder / "rank-0" / "step.hlo.txt").read_text())
    assert len(trace.operations) == record.traced.events
    assert all(attribution.knows(each.name) for each in trace.operations)


def test_the_cross_checks_are_there(out: tuple[Path, str]) -> None:
    record = record_of(out[0])
    assert record.staged is not None, record.staged_note
    assert {each.region for each in record.staged.parts} >= {"local-arithmetic", "communication", "update"}
    assert {each.removed for each in record.ablations} == {"communication", "local-arithmetic"}


def test_what_is_printed(out: tuple[Path, str]) -> None:
    text = out[1]
    for part in (
        "2 logical devices of a host",
        "0 compile events",
        "measured: region",
        "inferred: cause",
        "unmapped 0.0%",
        "opportunity, conditional",
        "one executable a region",
        "without communication",
        "the profiler's cost",
    ):
        assert part in text
    assert "unverified" not in text


def test_a_place_that_is_taken_and_a_size_that_is_none_are_refused(out: tuple[Path, str], tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    done = tool(tmp_path, *SMALL, "--out", "taken")
    assert done.returncode == 2 and "written once" in done.stderr
    done = tool(tmp_path, *SMALL, "--dims", "n=none")
    assert done.returncode == 2 and "n=none" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--dims", "q=3"), "no such dimension"),
        (("--side", "squash"), "did you mean 'squashed'"),
        (("--remat", "some"), "unknown"),
    ],
)
def test_what_cannot_be_profiled_is_told(tmp_path: Path, arguments: tuple[str, ...], told: str) -> None:
    done = tool(tmp_path, *SMALL, *arguments)
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr


@pytest.mark.slow
def test_no_file_tells_where_it_was_made(tmp_path: Path) -> None:
    """Under a random user, home and checkout; every file unpacked, and the host's name where a profiler writes it."""
    user, home, checkout = (f"x{secrets.token_hex(6)}" for _ in range(3))
    place = tmp_path / checkout / user / home
    place.mkdir(parents=True)
    shutil.copytree(SOURCE, place / "src", ignore=shutil.ignore_patterns("__pycache__"))
    named = {"USER": user, "LOGNAME": user, "HOME": str(place), "PYTHONPATH": str(place / "src")}
    done = tool(place, *SMALL, "--out", "out", **named)
    assert done.returncode == 0, done.stderr
    files = [each for each in (place / "out").rglob("*") if each.is_file()]
    assert len(files) == 4
    for file in files:
        data = file.read_bytes()
        data = gzip.decompress(data) if file.suffix == ".gz" else data
        for word in (user, home, checkout, str(tmp_path)):
            assert word.encode() not in data, f"{word} in {file.name}"
    assert host_names((place / "out" / "rank-0" / "trace.xplane.pb").read_bytes()) == []
    assert private_text(place / "out", [user, home, checkout]) == []


@pytest.mark.slow
def test_checkpoint_policies(tmp_path: Path) -> None:
    wanted = ("all", "save:pre", "offload:pre")
    done = tool(tmp_path, *SMALL, *(each for policy in wanted for each in ("--remat", policy)), "--json")
    assert done.returncode == 0, done.stderr
    twins = {each["policy"]: each for each in json.loads(done.stdout)["twins"]}
    assert list(twins) == ["none", *wanted]
    assert all(each["accepted"] and each["within"] for each in twins.values())
    assert twins["all"]["recomputed_flops"] > twins["save:pre"]["recomputed_flops"]
    assert twins["all"]["temporary_bytes"] < twins["none"]["temporary_bytes"]
    assert twins["offload:pre"]["host_transfer_bytes"] > 0 == twins["save:pre"]["host_transfer_bytes"]
    assert twins["none"]["names"] == ["out", "pre"]
