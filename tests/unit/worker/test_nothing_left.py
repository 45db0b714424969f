"""Whatever ends, and however: no process stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernel_audit.errors import EnvironmentFault
from kernel_audit.worker import Pool

HERE = Path(__file__).parent


def _wait_until(condition, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("then", ["echo", "exit_zero", "read_address_zero", "sleep", "raise_value_error"])
def test_children_that_detached_themselves_end_with_the_job(pool, job, tmp_path, processes_below, then):
    result = pool.run(job("leave_children", then=then, deadline_s=0.4))
    assert "children are there" in result.steps
    assert processes_below(tmp_path) == []


_PARENT = """
import sys
from pathlib import Path
from kernel_audit.worker import Job, Pool

pool = Pool()
job = Job("worker_specimens:leave_children", {"then": "sleep"}, Path(sys.argv[1]), 600.0, import_path=(sys.argv[2],))
future = pool.submit(job)
while not any(Path(sys.argv[1]).glob("steps/*.json")):
    pass
print(*pool.zygote_pids(), flush=True)
future.result()
"""


def test_kill_9_of_the_parent_leaves_no_process(tmp_path, processes_below):
    command = [sys.executable, "-c", _PARENT, str(tmp_path), str(HERE)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        zygotes = [int(each) for each in parent.stdout.readline().split()]
        assert len(zygotes) == 1
        assert len(processes_below(tmp_path)) >= 3
        parent.kill()
    assert _wait_until(lambda: processes_below(tmp_path) == [] and not any(map(_is_running, zygotes)))


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_kill_9_of_a_warden_or_a_zygote_costs_one_job_and_is_said(job, tmp_path, processes_below):
    with Pool() as pool:
        for number, victim in enumerate(["warden", "zygote"]):
            folder = tmp_path / victim
            future = pool.submit(job("leave_children", then="sleep", folder=folder))
            assert _wait_until(lambda folder=folder: any(folder.glob("steps/*.json")))
            (zygote,) = pool.zygote_pids()
            os.kill(zygote if victim == "zygote" else _children(zygote)[0], signal.SIGKILL)
            result = future.result(timeout=20)
            assert (result.outcome, result.error["type"]) == ("crashed", "WorkerLost")
            assert victim in result.error["message"]
            assert list(result.steps) == ["children are there"]
            if victim == "zygote" or result.isolation["processes"] == "namespace":
                assert _wait_until(lambda: processes_below(tmp_path) == [])
            assert pool.run(job("echo", value=1)).value == 1
            assert pool.restarts == number
            assert (pool.zygote_pids() == [zygote]) == (victim == "warden")


def test_closing_the_pool_ends_what_runs_and_cancels_what_waits(job, tmp_path, processes_below):
    pool = Pool()
    running = pool.submit(job("leave_children", then="sleep", folder=tmp_path / "running"))
    waiting = pool.submit(job("echo"))
    assert _wait_until(lambda: any(tmp_path.glob("running/steps/*.json")))
    (zygote,) = pool.zygote_pids()
    pool.close()
    with pytest.raises(EnvironmentFault, match="the pool was closed"):
        running.result()
    assert waiting.cancelled()
    assert processes_below(tmp_path) == []
    assert not _is_running(zygote)
