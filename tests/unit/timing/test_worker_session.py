"""Sessions of real CPU programs in fresh workers, and what the measuring half needs to be installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from device_machine import importing

from kernel_audit.errors import TargetError
from kernel_audit.records import CANNOT_TELL, SLOWER
from kernel_audit.statistics import session_verdict
from kernel_audit.timing import plan_session
from kernel_audit.timing.cpu_study import STEPS, STUDY_PRELOAD, Bench
from kernel_audit.timing.worker_session import Timing, run_session
from kernel_audit.worker import Pool

MEASURING = importing("import kernel_audit.timing.process_job")


def test_the_measuring_half_of_a_session_needs_five_packages():
    done = subprocess.run([sys.executable, "-c", MEASURING], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("imported\n", "")


@pytest.mark.slow
def test_the_test_above_can_fail():
    done = subprocess.run([sys.executable, "-c", MEASURING, "click"], capture_output=True, text=True)
    assert "not on a device machine: click" in done.stderr


def test_the_parent_of_a_session_imports_no_jax():
    code = "import sys, kernel_audit.timing.worker_session, kernel_audit.timing.cpu_study; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Iterator[Bench]:
    with Pool(size=1, preload=STUDY_PRELOAD) as pool:
        yield Bench(pool, tmp_path_factory.mktemp("bench"), busy_share=9.0)


@pytest.mark.slow
def test_a_real_session_finds_twice_the_work(bench: Bench):
    """On a busy machine it may not be able to tell; the wrong way round it may never be."""
    plan = plan_session(seed=1, input_sets=4, pairs=160, processes=8)
    session = bench.session(2 * STEPS, plan)
    verdict = session_verdict(session)
    assert (session.provenance, session.scope.claims) == ("measured", "host-only")
    assert verdict.verdict in (SLOWER, CANNOT_TELL)
    assert verdict.ratio.low < 2 < verdict.ratio.high * 1.05
    assert verdict.ratio.ratio > 1.2
    assert len({process.seed for process in session.processes}) == 8
    assert all(check.differing == 0 for process in session.processes for check in process.checks)


@pytest.mark.slow
def test_a_pilot_of_a_real_machine_gives_a_plan(bench: Bench):
    plan = bench.piloted_plan(1)
    assert plan.pilot_noise > 0 and plan.pilot_pairs == 60
    assert 300 <= plan.pairs <= 600 and "the pilot's noise" in plan.chosen


@pytest.mark.slow
def test_a_process_that_ends_badly_is_lost_and_recorded(bench: Bench, tmp_path: Path):
    """Operands of a task that does not exist: every process fails, and none is repeated."""
    from kernel_audit.errors import EnvironmentFault

    place = bench.program(STEPS)
    timing = Timing(
        {"candidate": place, "baseline": place}, {"candidate": "c", "baseline": "b"}, {"function": "nowhere:task"}
    )
    with pytest.raises(EnvironmentFault, match="no process of the session gave samples") as raised:
        run_session(bench.pool, tmp_path, timing, plan_session(seed=1, input_sets=1, pairs=16, processes=2))
    assert "ModuleNotFoundError" in raised.value.got


def test_another_backend_than_the_one_asked_for_is_refused_before_anything_is_made(bench: Bench, tmp_path: Path):
    """Files that do not exist are never opened."""
    nowhere = {"candidate": tmp_path / "none", "baseline": tmp_path / "none"}
    timing = Timing(nowhere, {"candidate": "c", "baseline": "b"}, {"function": "nowhere:task"}, target="tpu")
    with pytest.raises(TargetError, match="no TPU") as raised:
        run_session(bench.pool, tmp_path, timing, plan_session(seed=1, input_sets=1, pairs=16, processes=2))
    assert "'cpu'" in raised.value.text()
