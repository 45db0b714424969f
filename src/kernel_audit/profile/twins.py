"""Cross-checks beside the trace: the step cut into one executable a region, and the step without one of its parts."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from kernel_audit.profile.passes import Runner
from kernel_audit.profile.placed_step import CompiledStep, PlacedStep, compiled_step
from kernel_audit.profile.rewritten import without_collectives, without_local
from kernel_audit.profile.staged import Cut, NotCut
from kernel_audit.records import Ablation, StagedCheck, StagedPart
from kernel_audit.records.profile import COMMUNICATION
from kernel_audit.statistics import difference_interval, median

WARM_UP = 3


def staged_check(
    step: PlacedStep, compiled: CompiledStep, runner: Runner, rounds: int
) -> tuple[StagedCheck | None, str]:
    """(the check, ""), or (None, why the step cannot be cut). Rounds of the fused program and of all parts, in turn;
    operands in place.
    """
    try:
        cut = Cut(step.function, step.specs())
    except NotCut as error:
        return None, str(error)
    operands = runner.placed()
    walls: dict[str, list[int]] = defaultdict(list)
    fused: list[int] = []

    def part_once(part: Any, call: Callable[[], Any]) -> Any:
        began = time.perf_counter_ns()
        found = jax.block_until_ready(call())
        walls[part.name].append(time.perf_counter_ns() - began)
        return found

    for number in range(WARM_UP + rounds):
        if number == WARM_UP:
            walls.clear()
            fused.clear()
        turns = [lambda: fused.append(_wall(compiled.call, operands)), lambda: cut.run(operands, part_once)]
        for turn in turns if number % 2 else reversed(turns):
            turn()
    parts = [StagedPart(name=each.name, region=each.region, wall_ns=walls[each.name]) for each in cut.parts]
    ratio = sum(median(each.wall_ns) for each in parts) / median(fused)
    return StagedCheck(parts=parts, fused_ns=fused, ratio=ratio), ""


def ablations(step: PlacedStep, compiled: CompiledStep, runner: Runner, pairs: int) -> list[Ablation]:
    """The step beside itself without its collectives, and without the candidate's region."""
    found = []
    twin, count = without_collectives(step.function, step.specs())
    if count:
        note = f"{count} collectives replaced by local work of their results' shapes"
        found.append(_ablated(COMMUNICATION, twin, step, compiled, runner, pairs, note))
    note = "the candidate's place filled with results made from one element of each operand"
    bare = step.with_local(without_local(step.local))
    found.append(_ablated(step.region, bare, step, compiled, runner, pairs, note))
    return found


def _ablated(
    removed: str,
    twin: Callable[..., Any],
    step: PlacedStep,
    compiled: CompiledStep,
    runner: Runner,
    pairs: int,
    note: str,
) -> Ablation:
    left, right = interleaved([compiled.call, compiled_step(step, twin).call], runner.placed(), pairs)
    difference = difference_interval(left, right)
    return Ablation(
        removed=removed,
        step_ns=left,
        twin_ns=right,
        difference_ns=difference.value,
        low_ns=difference.low,
        high_ns=difference.high,
        note=note,
    )


def interleaved(calls: Sequence[Callable[..., Any]], operands: Sequence[Any], rounds: int) -> list[list[int]]:
    """Walls in ns of each program on operands that are in place; each round runs all of them, in random order."""
    rng = np.random.default_rng(0)
    for call in calls:
        for _ in range(WARM_UP):
            _wall(call, operands)
    walls: list[list[int]] = [[] for _ in calls]
    for _ in range(rounds):
        for index in rng.permutation(len(calls)):
            walls[index].append(_wall(calls[index], operands))
    return walls


def _wall(call: Callable[..., Any], operands: Sequence[Any]) -> int:
    began = time.perf_counter_ns()
    jax.block_until_ready(call(*operands))
    return time.perf_counter_ns() - began
