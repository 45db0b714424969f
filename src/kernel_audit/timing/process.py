"""One process of a session: warm up, run the planned pairs, keep every sample, let others look at the results.

Only the two readings of the clock around a call are inside the boundary. Which side runs is known to nothing but the loop here:
the columns of the record follow the object that was called, not its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kernel_audit.records import PairColumns, SessionPlan, TimedProcess
from kernel_audit.statistics import median
from kernel_audit.timing.clock import Clock
from kernel_audit.timing.plan import Step, process_seed, process_steps
from kernel_audit.timing.side import Guard, Judge, Operands, Side, Sides

_EMPTY_CALLS = 31


def run_process(
    sides: Sides,
    operands: Operands,
    judge: Judge,
    clock: Clock,
    plan: SessionPlan,
    index: int,
    *,
    second_clock: Clock | None = None,
    guards: Sequence[Guard] = (),
) -> TimedProcess:
    """All samples of process `index`. What a side raises propagates: a program that fails has no time."""
    seed = process_seed(plan, index)
    steps = process_steps(plan, seed)
    warm_up_s = _warm_up(sides, operands, clock, plan)
    dispatch_s = _dispatch(sides, clock)
    timed = _Timed(clock, second_clock, guards, judge)
    timed.run(steps, sides, operands)
    return TimedProcess(
        index=index,
        seed=seed,
        compile_s=sides.compile_s,
        placement_s=sides.placement_s,
        warm_up_s=warm_up_s,
        dispatch_s=dispatch_s,
        checks=list(judge.conclude(timed.calls)),
        **{kind: PairColumns(**columns) for kind, columns in timed.columns.items()},
    )


def _warm_up(sides: Sides, operands: Operands, clock: Clock, plan: SessionPlan) -> dict[str, list[float]]:
    """`plan.warm_ups` calls of every side, in turn, on different operands; kept, and counted by nothing."""
    found: dict[str, list[float]] = {}
    for call in range(plan.warm_ups):
        given = operands.rotated(call % operands.sets)
        for side in (sides.candidate, sides.baseline, sides.twin, sides.doubled):
            started = clock.now()
            side(given)
            found.setdefault(side.record.role, []).append(clock.now() - started)
    return found


def _dispatch(sides: Sides, clock: Clock) -> float:
    """The median time of an empty program at the same boundary; 0 without one."""
    if sides.empty is None:
        return 0.0
    samples = []
    for _ in range(_EMPTY_CALLS):
        started = clock.now()
        sides.empty()
        samples.append(clock.now() - started)
    return median(samples)


class _Timed:
    """The loop over pairs and the columns that it fills."""

    def __init__(self, clock: Clock, second: Clock | None, guards: Sequence[Guard], judge: Judge) -> None:
        self._now = clock.now
        self._second_now: Callable[[], float] | None = second.now if second is not None else None
        self._guards = guards
        self._judge = judge
        self._ran: list[list[str]] = []  # the `voided` column of each pair so far, in the order in which they ran
        self.calls: dict[str, int] = {}
        self.columns: dict[str, dict[str, list[Any]]] = {}

    def run(self, steps: Sequence[Step], sides: Sides, operands: Operands) -> None:
        pairs = sides.pairs()
        self.columns = {kind: {name: [] for name in PairColumns.__struct_fields__} for kind in pairs}
        for guard in self._guards:
            guard.start()
        for step in steps:
            given = operands.rotated(step.inputs) if step.inputs >= 0 else operands.fresh(step.inputs)
            self._pair(step, pairs[step.kind], given, self.columns[step.kind])

    def _pair(self, step: Step, pair: tuple[Side, Side], given: Any, columns: dict[str, list[Any]]) -> None:
        names = ("left", "right") if step.order == 0 else ("right", "left")
        outputs = []
        for name, side in zip(names, pair if step.order == 0 else pair[::-1], strict=True):
            elapsed, second, output = self._sample(side, given)
            columns[f"{name}_s"].append(elapsed)
            if second is not None:
                columns[f"{name}_second_s"].append(second)
            outputs.append((side, output))
        columns["order"].append(step.order)
        columns["inputs"].append(step.inputs)
        columns["voided"].append("")
        self._void(columns["voided"])
        for side, output in outputs:
            role = side.record.role
            self.calls[role] = self.calls.get(role, 0) + 1
            if step.checked:
                self._judge.take(side, step.inputs, given, output)

    def _sample(self, side: Side, given: Any) -> tuple[float, float | None, Any]:
        """One call between two readings; the second clock is read outside the first."""
        second_now, now = self._second_now, self._now
        second = second_now() if second_now is not None else 0.0
        started = now()
        output = side(given)
        elapsed = now() - started
        return elapsed, (second_now() - second if second_now is not None else None), output

    def _void(self, column: list[str]) -> None:
        """Asks every guard about the pair that ran, and marks earlier ones that a guard concerns too."""
        self._ran.append(column)
        for guard in self._guards:
            reason, backwards = guard.look()
            if reason:
                self._mark(reason, 1 + backwards)

    def _mark(self, reason: str, count: int) -> None:
        """The last `count` pairs, each in the column it was written to."""
        left: dict[int, int] = {}
        for column in reversed(self._ran[-count:]):
            left[id(column)] = left.get(id(column), 0) + 1
            place = len(column) - left[id(column)]
            column[place] = column[place] or reason
