"""What a worker is kept from; and the same jobs where the machine allows less, each lack named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def isolation(pool, job) -> dict:
    return dict(pool.run(job("echo")).isolation)


def _need(isolation: dict, part: str, value: str) -> None:
    if isolation[part] != value:
        pytest.skip(f"not allowed on this machine: {part} is {isolation[part]}")


def test_the_network_is_unreachable(pool, job, isolation):
    _need(isolation, "network", "blocked")
    reached = pool.run(job("connect")).value
    assert reached == {"outside": "Network is unreachable", "loopback": "Network is unreachable"}


def test_a_job_may_have_a_loopback_of_its_own_and_still_reach_nothing(pool, job, isolation):
    _need(isolation, "network", "blocked")
    result = pool.run(job("connect", loopback=True))
    assert result.isolation["network"] == "loopback"
    assert result.value == {"outside": "Network is unreachable", "loopback": "Connection refused"}


def test_only_the_folder_of_the_job_and_what_it_names_can_be_written(pool, job, isolation, tmp_path):
    _need(isolation, "files", "read-only")
    extra, other = tmp_path / "extra", tmp_path / "other"
    extra.mkdir()
    other.mkdir()
    folder = tmp_path / "job"
    paths = [str(folder / "scratch" / "x"), str(extra / "x"), str(other / "x"), "/dev/null", str(HERE / "x")]
    value = pool.run(job("write_to", folder=folder, writable=(extra,), paths=paths)).value
    denied = "Read-only file system"
    assert list(value.values()) == ["written", "written", denied, "written", denied]


def test_a_writable_folder_may_hold_that_of_the_job(pool, job, isolation, tmp_path):
    _need(isolation, "files", "read-only")
    made = job("write_to", writable=(tmp_path,), paths=[str(tmp_path / "x"), str(HERE / "x")])
    result = pool.run(made)
    assert result.isolation["files"] == "read-only"
    assert list(result.value.values()) == ["written", "Read-only file system"]


def test_other_processes_are_out_of_sight(pool, job, isolation):
    _need(isolation, "process_view", "private")
    value = pool.run(job("look_around")).value
    assert value["processes"] == 2
    assert pool.run(job("trace_another", pid=os.getpid())).value == "No such file or directory"


def test_a_worker_holds_three_descriptors_no_core_and_its_own_folder(pool, job):
    made = job("look_around")
    value = pool.run(made).value
    assert value["descriptors"] == 3
    assert value["core"] == [0, 0]
    assert value["folder"] == str(made.folder / "scratch")


def test_the_environment_is_clean_and_can_be_given(pool, job, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "in the parent")
    flags = "--xla_force_host_platform_device_count=3"
    result = pool.run(
        job("settings", environment={"XLA_FLAGS": flags, "MINE": "1"}, jax_config={"jax_enable_x64": True})
    )
    value = result.value
    assert (value["dtype"], value["devices"], value["backend"]) == ("float64", 3, "cpu")
    assert value["environment"]["MINE"] == "1"
    assert value["environment"]["HOME"].endswith("scratch")
    assert "SECRET_TOKEN" not in value["environment"]


def test_settings_of_one_job_do_not_reach_the_next(pool, job):
    pool.run(job("settings", jax_config={"jax_enable_x64": True}))
    assert [pool.run(job("settings")).value["dtype"] for _ in range(2)] == ["float32", "float32"]


_WITHOUT = """
import json, sys
from pathlib import Path
from kernel_audit.worker import Job, Pool, linux

user, refused = int(sys.argv[2]), sys.argv[3].split()
linux.unshare(linux.CLONE_NEWUSER)
Path("/proc/self/setgroups").write_text("deny")
Path("/proc/self/uid_map").write_text(f"{user} 0 1")
Path("/proc/self/gid_map").write_text(f"{user} 0 1")
for kind in refused:
    Path(f"/proc/sys/user/max_{kind}_namespaces").write_text("0")
folder = Path(sys.argv[1])
with Pool() as pool:
    jobs = [("leave_children", {}), ("add_with_jax", {"count": 4}), ("forge_step", {}), ("sleep", {})]
    for number, (name, arguments) in enumerate(jobs):
        where = folder / str(number)
        job = Job(f"worker_specimens:{name}", arguments, where, 0.5, import_path=(sys.argv[4],))
        result = pool.run(job)
        print(json.dumps([result.outcome, result.isolation]))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="maps root to another user to take rights away")
@pytest.mark.parametrize(
    ("user", "refused", "expected"),
    [
        (1000, "", {"network": "blocked", "processes": "namespace", "files": "read-only"}),
        pytest.param(
            0, "pid", {"network": "blocked", "processes": "group: ", "files": "read-only"}, marks=pytest.mark.slow
        ),
        (1000, "user net pid mnt", {"network": "not blocked: ", "processes": "group: ", "files": "writable: "}),
    ],
)
def test_with_fewer_rights_jobs_run_the_same_and_each_lack_is_named(tmp_path, processes_below, user, refused, expected):
    if subprocess.run(["unshare", "-U", "true"], capture_output=True).returncode:
        pytest.skip("user namespaces are not allowed here")
    command = [sys.executable, "-W", "error", "-c", _WITHOUT, str(tmp_path), str(user), refused, str(HERE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert [outcome for outcome, _ in results] == ["finished", "finished", "forged-output", "timed-out"]
    for part, start in expected.items():
        assert results[0][1][part].startswith(start)
    assert processes_below(tmp_path) == []
