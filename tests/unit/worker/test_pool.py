"""The pool itself: it starts at once, runs side by side, and explains what it cannot do."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernel_audit.errors import EnvironmentFault, InternalError
from kernel_audit.worker import Pool, as_completed

HERE = Path(__file__).parent


def test_the_parent_loads_neither_jax_nor_numpy():
    code = "import sys, kernel_audit.worker; print([n for n in ('jax', 'numpy') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_pool_returns_at_once_its_first_job_waits_and_closed_it_takes_no_more(job):
    started = time.monotonic()
    with Pool() as pool:
        assert time.monotonic() - started < 0.2
        assert pool.run(job("echo", value=1)).value == 1
    with pytest.raises(InternalError, match="the pool is closed"):
        pool.submit(job("echo"))


def test_jobs_run_side_by_side(pool, job):
    [each.result() for each in [pool.submit(job("echo")) for _ in range(2)]]  # both zygotes are up
    started = time.monotonic()
    futures = [pool.submit(job("sleep", seconds=0.4)) for _ in range(2)]
    assert {each.result().outcome for each in as_completed(futures)} == {"finished"}
    assert time.monotonic() - started < 0.75


def test_many_jobs_share_a_zygote_and_none_touches_the_next(pool, job):
    names = ["exit_at_once", "echo"] * 10
    futures = [pool.submit(job(name, **({"code": 3} if name == "exit_at_once" else {"value": 5}))) for name in names]
    assert [each.result().value for each in futures] == [None, 5] * 10
    assert pool.restarts == 0


def test_a_folder_serves_one_job(pool, job, tmp_path):
    pool.run(job("echo", folder=tmp_path / "one"))
    with pytest.raises(InternalError, match="used once"):
        pool.submit(job("echo", folder=tmp_path / "one"))


def test_an_interpreter_that_is_not_there_is_named(job):
    with Pool(python="/nowhere/python") as pool, pytest.raises(EnvironmentFault, match="/nowhere/python"):
        pool.run(job("echo"))


def test_an_interpreter_that_cannot_import_says_what(job, tmp_path, monkeypatch):
    (tmp_path / "broken_preload.py").write_text("raise ImportError('no such accelerator')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Pool(preload=("broken_preload",)) as pool, pytest.raises(EnvironmentFault, match="no such accelerator"):
        pool.run(job("echo"))


_STARTS_A_THREAD = """
import pathlib, threading, time
marker = pathlib.Path({marker!r})
if not marker.exists():
    marker.touch()
    threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
"""


def test_a_zygote_with_a_second_thread_is_replaced_before_it_forks(job, tmp_path, monkeypatch):
    (tmp_path / "threaded_preload.py").write_text(_STARTS_A_THREAD.format(marker=str(tmp_path / "marker")))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Pool(preload=("threaded_preload",)) as pool:
        assert pool.run(job("echo", value=2)).value == 2
        assert pool.restarts == 1


@pytest.mark.slow
def test_a_zygote_that_always_has_a_backend_is_refused_by_name(job, tmp_path, monkeypatch):
    (tmp_path / "backend_preload.py").write_text("import jax; jax.config.update('jax_platforms', 'cpu'); jax.devices()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with Pool(preload=("backend_preload",)) as pool, pytest.raises(EnvironmentFault, match="the zygote has"):
        pool.run(job("echo"))
