"""Every way in which a job can end, each with its own outcome, and nothing left behind."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_audit.errors import CaptureError
from kernel_audit.worker import Job, JobResult, Pool

Make = Callable[..., Job]


@pytest.fixture
def run(pool: Pool, job: Make, tmp_path: Path, processes_below) -> Callable[..., JobResult]:
    """Runs a specimen and makes sure that no process of it is left."""

    def run_one(name: str, **arguments) -> JobResult:
        result = pool.run(job(name, **arguments))
        assert processes_below(tmp_path) == []
        return result

    return run_one


def test_a_value_crosses(run):
    value = {"a": [1, 2.5, None, "text"], "b": {"c": True}}
    result = run("echo", value=value)
    assert (result.outcome, result.value, result.error, result.exit_code, result.signal) == (
        "finished",
        value,
        None,
        0,
        None,
    )


def test_not_a_number_and_infinity_cross(run):
    values = run("echo", value=[math.nan, math.inf, -math.inf]).value
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf]


@pytest.mark.parametrize("code", [0, 1, 3, 70, 255])
def test_an_exit_without_a_result_is_a_crash_whatever_its_code(run, code):
    result = run("exit_at_once", code=code)
    assert (result.outcome, result.exit_code, result.value) == ("crashed", code, None)
    assert f"exit code {code}" in result.error["message"]


def test_a_system_exit_is_an_error_like_any_other(run):
    result = run("leave_by_exception", code=0)
    assert (result.outcome, result.error["type"]) == ("raised", "SystemExit")


@pytest.mark.parametrize(
    ("specimen", "number"),
    [("read_address_zero", signal.SIGSEGV), ("abort", signal.SIGABRT)],
)
def test_a_signal_is_a_crash_that_names_it(run, specimen, number):
    result = run(specimen)
    assert (result.outcome, result.signal, result.exit_code) == ("crashed", number, None)


def test_a_worker_that_kills_itself_is_a_crash(run):
    assert run("send_itself", number=signal.SIGKILL).signal == signal.SIGKILL


@pytest.mark.parametrize("specimen", ["sleep", "spin"])
def test_what_never_ends_is_stopped_at_the_deadline(run, specimen):
    result = run(specimen, deadline_s=0.3)
    assert result.outcome == "timed-out"
    assert "no progress for 0.3 s outside any step" in result.error["message"]
    assert 0.3 <= result.seconds < 3


@pytest.mark.parametrize("specimen", ["numpy_64_gib", "jax_64_gib"])
def test_a_request_for_64_gib_is_out_of_memory(run, specimen):
    result = run(specimen)
    assert result.outcome == "out-of-memory", result
    assert result.peak_bytes < 2 << 30


def test_memory_taken_bit_by_bit_ends_the_same_and_can_still_be_reported(run):
    result = run("hoard", memory_bytes=1 << 29)
    assert (result.outcome, result.error["type"]) == ("out-of-memory", "MemoryError")
    assert 1 << 29 < result.peak_bytes < 1 << 30


def test_an_abort_after_bad_alloc_is_out_of_memory(run):
    assert run("bad_alloc").outcome == "out-of-memory"


def test_honest_jax_runs_in_the_default_limit(run):
    assert run("add_with_jax", count=1 << 20).value == 2 << 20


def test_the_tpu_interpreter_runs_in_the_default_limit(run):
    result = run("tpu_interpreter")
    assert (result.outcome, result.value) == ("finished", True), result.stderr


def test_an_exception_crosses_as_data(run):
    result = run("raise_value_error")
    assert result.outcome == "raised"
    assert result.error["type"] == "ValueError"
    assert result.error["message"] == "no such thing"
    assert result.error["where"].startswith("worker_specimens.py:")
    assert result.audit_error() is None
    assert "Traceback" in result.stderr


def test_an_exception_whose_text_raises_still_crosses(run):
    assert run("raise_unreadable").error["type"] == "Unreadable"


def test_an_audit_error_crosses_in_its_five_parts(run):
    error = run("raise_audit_error").audit_error()
    assert type(error) is CaptureError
    assert (error.what, error.stage, error.where) == ("the block does not divide", "capture", "kernel axpy")
    assert (error.expected, error.got, error.settled) == ("8", "7", {"dtype": "float32"})
    assert error.next_command == "kernel-audit inspect axpy"


def test_a_value_that_is_not_json_is_an_error_of_the_job(run):
    result = run("return_unspeakable")
    assert (result.outcome, result.error["type"]) == ("raised", "TypeError")


def test_a_result_followed_by_a_bad_exit_is_a_crash(run):
    result = run("result_then_exit")
    assert (result.outcome, result.exit_code, result.value) == ("crashed", 3, None)


def test_each_step_has_the_whole_deadline(run):
    result = run("three_steps", seconds=0.2, deadline_s=0.4)
    assert (result.outcome, result.value) == ("finished", "done")
    assert list(result.steps.items()) == [("cell/0", 0), ("cell/1", 1), ("cell/2", 2)]
    assert result.step_in_progress is None


def test_the_total_bounds_a_job_that_always_makes_progress(run):
    result = run("three_steps", seconds=0.3, deadline_s=30.0, total_s=0.45)
    assert result.outcome == "timed-out"
    assert list(result.steps) == ["cell/0"]


@pytest.mark.parametrize(
    ("then", "outcome"),
    [
        ("exit_zero", "crashed"),
        ("read_address_zero", "crashed"),
        ("raise_value_error", "raised"),
        ("numpy_64_gib", "out-of-memory"),
        ("sleep", "timed-out"),
    ],
)
def test_finished_steps_count_whatever_comes_after(run, then, outcome):
    result = run("steps_then", then=then, deadline_s=0.4)
    assert result.outcome == outcome
    assert result.steps["first"]["n"] == 1
    assert math.isnan(result.steps["first"]["nan"])
    assert result.step_in_progress == "second"
    if outcome == "timed-out":
        assert "in step second" in result.error["message"]
