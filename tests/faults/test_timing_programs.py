"""Only bytes are timed: what a candidate does around its program never reaches the clock, and what it bakes in is judged."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent))

from sampling import sampled
from timing_programs import HONEST_PROGRAMS, SIZE, SPECS, TRICKS, Trick, honest

from kernel_audit.errors import AuditError
from kernel_audit.program import Generic, capture
from kernel_audit.records import OutputCheck, TimedProcess
from kernel_audit.timing import plan_session
from kernel_audit.timing.judging import close_to
from kernel_audit.timing.loaded import LoadedSide, PlacedOperands
from kernel_audit.timing.process_job import measure_process
from kernel_audit.timing.task import Task

PLAN = plan_session(seed=2, input_sets=2, pairs=32, processes=8, fresh_every=2, check_every=2, direction_pairs=1)


def _operands(seed: int) -> Sequence[np.ndarray]:
    draw = np.random.default_rng(seed)
    return [draw.normal(size=(SIZE, SIZE)).astype(np.float32) for _ in range(2)]


def _expected(operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    x, w = (each.astype(np.float64) for each in operands)
    return [x @ w + 1]


TASK = Task(_operands, _expected, close_to(1e-5), "float64 on the host")


def _bytes(function: Any) -> bytes:
    return capture(function, SPECS).export(Generic())


def _measured(candidate: bytes) -> dict[str, Any]:
    names = {"candidate": "candidate", "baseline": "honest"}
    return measure_process(
        {"candidate": candidate, "baseline": _bytes(honest)}, names, TASK, PLAN, 0, {}, busy_share=9.0
    )


def _check(found: dict[str, Any], role: str) -> OutputCheck:
    import msgspec

    process = msgspec.convert(found["process"], TimedProcess)
    return next(each for each in process.checks if each.role == role)


@pytest.mark.parametrize(
    "trick",
    sampled(
        TRICKS,
        lambda each: each.name.replace(" ", "-"),
        quick=lambda _, each: each.ends in ("same", "refused"),
        slow_step=1,
    ),
)
def test_a_trick_never_reaches_the_clock(trick: Trick):
    if trick.ends == "refused":
        with pytest.raises(AuditError):
            LoadedSide("candidate", trick.name, _bytes(trick.make()))
        return
    program = capture(trick.make(), SPECS)
    if trick.ends == "same":
        assert program.digest == capture(honest, SPECS).digest
        return
    found = _measured(program.export(Generic()))
    check = _check(found, "candidate")
    assert check.checked > 0 and check.fresh > 0
    assert (check.differing > 0) is (trick.ends == "differs"), check.note
    assert _check(found, "baseline").differing == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", HONEST_PROGRAMS)
def test_an_honest_program_is_measured_and_not_accused(name: str):
    found = _measured(_bytes(HONEST_PROGRAMS[name]))
    assert _check(found, "candidate").differing == 0
    assert not any(found["process"]["comparison"]["voided"])


def test_a_call_returns_complete_arrays_and_keeps_its_operands():
    import jax

    side = LoadedSide("candidate", "donating", _bytes(jax.jit(honest, donate_argnums=(0, 1))))
    operands = PlacedOperands(TASK, 2, 1).rotated(0)
    results = side(operands)
    assert all(isinstance(each, jax.Array) and each.is_ready() for each in jax.tree.leaves(results))
    assert not any(each.is_deleted() for each in operands)
    assert side.compile_s > 0


def test_operands_can_be_made_on_the_device_itself():
    import jax

    def generate(seed: int) -> list[jax.Array]:
        keys = jax.random.split(jax.random.key(seed))
        return [jax.random.normal(each, (SIZE, SIZE)) for each in keys]

    task = dataclasses.replace(TASK, make=lambda seed: 1 / 0, generate=generate)
    operands = PlacedOperands(task, 2, 1)
    for index in (0, 1, -1, -2):
        placed = operands.rotated(index) if index >= 0 else operands.fresh(index)
        for here, again in zip(placed, operands.again(index), strict=True):
            np.testing.assert_array_equal(np.asarray(here), np.asarray(again))
    assert _agreement(_expected([np.asarray(each) for each in placed]), LoadedSide("b", "b", _bytes(honest))(placed))


def _agreement(expected: Any, actual: Any) -> bool:
    return TASK.agree([np.asarray(each) for each in actual], expected) == ""


def test_one_process_keeps_everything_and_says_where_it_ran():
    found = _measured(_bytes(honest))
    assert found["scope"]["claims"] == "host-only" and found["scope"]["platform"] == "cpu"
    assert found["clock"]["kind"] == "host" and found["second_clock"]["kind"] == "process-cpu"
    process = found["process"]
    assert sorted(process["compile_s"]) == ["baseline", "candidate", "twin"]
    assert len(process["comparison"]["left_s"]) == len(process["control"]["left_s"]) == 4
    assert min(process["comparison"]["left_s"]) > 0 and process["dispatch_s"] > 0
    assert _check(found, "twin").differing == 0
