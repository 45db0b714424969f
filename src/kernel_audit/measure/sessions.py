"""Sessions of several comparisons over the same fresh processes, one process after the other. The parent imports no JAX."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.records import Session, SessionPlan, TimedProcess, TimedSide
from kernel_audit.timing.guards import BUSY_SHARE
from kernel_audit.timing.plan import PILOT_PAIRS, plan_session
from kernel_audit.timing.whole import assemble, pilot_logs
from kernel_audit.timing.worker_session import PILOT_PROCESSES, same_in_all, worst_clock
from kernel_audit.worker import GIB, Job

FUNCTION = "kernel_audit.measure.session_job:time_comparisons"
MEMORY_BYTES = 96 * GIB


@dataclass(frozen=True)
class Timed:
    """One pair of programs to time: files and names by role, and the arguments of its task."""

    id: str
    programs: Mapping[str, Path]
    names: Mapping[str, str]
    task: Mapping[str, Any]
    floors_s: Mapping[str, float] = field(default_factory=dict)


class Sessions:
    """Runs groups of sessions on a target. `engine` runs jobs there."""

    def __init__(
        self,
        engine: Any,
        work: Path,
        target: str,
        *,
        deadline_s: float = 300.0,
        busy_share: float = BUSY_SHARE,
        until_s: float = math.inf,
    ) -> None:
        self.engine, self.work, self.target = engine, work, target
        self.deadline_s, self.busy_share = deadline_s, busy_share
        self._numbers, self._until_s = itertools.count(), until_s

    @property
    def spent(self) -> bool:
        """Whether the time for the measurement is over: no further process is started."""
        return time.monotonic() > self._until_s

    def run(
        self,
        timed: Sequence[Timed],
        plans: Mapping[str, SessionPlan],
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> tuple[dict[str, Session], dict[str, str]]:
        """(sessions by id, why there is none by id). All plans have the same number of processes. A process that fails is not
        repeated: it is recorded as lost. Raises the AuditError of a program that is refused."""
        processes = max((plans[each.id].processes for each in timed), default=0)
        told: dict[str, list[dict[str, Any]]] = {each.id: [] for each in timed}
        lost: dict[str, list[str]] = {each.id: [] for each in timed}
        for index in range(processes):
            if self.spent:  # known before any result: what is not started is lost, and told
                for each in timed:
                    lost[each.id].append(f"process {index}: not started, the time for the measurement was spent")
                continue
            waiting = list(timed)
            while waiting:
                waiting = self._process(waiting, plans, index, told, lost)
            progress(index + 1, processes)
        sessions = {
            each.id: self._assembled(plans[each.id], told[each.id], lost[each.id]) for each in timed if told[each.id]
        }
        return sessions, {each.id: lost[each.id][0] for each in timed if not told[each.id]}

    def pilot_plan(self, seed: int, sets: int) -> SessionPlan:
        """Few processes and pairs, to choose on and to learn the noise from."""
        return plan_session(seed=seed, input_sets=sets, pairs=PILOT_PAIRS, processes=PILOT_PROCESSES)

    def _process(
        self,
        timed: Sequence[Timed],
        plans: Mapping[str, SessionPlan],
        index: int,
        told: dict[str, list[dict[str, Any]]],
        lost: dict[str, list[str]],
    ) -> list[Timed]:
        """One process; gives those comparisons that it did not come to, since another one ended it."""
        result = self.engine.run(self._job(timed, plans, index))
        error = result.audit_error()
        if error is not None:
            raise error
        left = []
        for each in timed:
            if each.id in result.steps:
                told[each.id].append(result.steps[each.id])
            elif each.id == result.step_in_progress or result.step_in_progress is None:
                lost[each.id].append(f"process {index}: {how_it_ended(result)}")
            else:
                left.append(each)
        return left

    def _job(self, timed: Sequence[Timed], plans: Mapping[str, SessionPlan], index: int) -> Job:
        comparisons = [
            {
                "id": each.id,
                "programs": {role: str(place.resolve()) for role, place in each.programs.items()},
                "names": dict(each.names),
                "task": dict(each.task),
                "plan": msgspec.to_builtins(plans[each.id]),
                "floors_s": dict(each.floors_s),
            }
            for each in timed
        ]
        return Job(
            FUNCTION,
            {"comparisons": comparisons, "index": index, "target": self.target, "busy_share": self.busy_share},
            self.work / f"session-{next(self._numbers)}",
            deadline_s=self.deadline_s,
            memory_bytes=MEMORY_BYTES,
        )

    def _assembled(self, plan: SessionPlan, told: list[dict[str, Any]], lost: list[str]) -> Session:
        from kernel_audit.records import SessionScope

        return assemble(
            provenance="measured",
            scope=same_in_all(told, "scope", SessionScope),
            clock=worst_clock(told, "clock"),
            second_clock=worst_clock(told, "second_clock"),
            sides=msgspec.convert(told[0]["sides"], list[TimedSide]),
            plan=plan,
            processes=[msgspec.convert(each["process"], TimedProcess) for each in told],
            lost=lost,
        )


def noise_of(session: Session) -> list[Any]:
    """Log ratios of the baseline against itself in a pilot."""
    return pilot_logs(session.processes, session.clock.step_s)


def how_it_ended(result: Any) -> str:
    """How a job ended without its steps, in a line."""
    if result.error:
        return f"{result.outcome}, {result.error.get('type')}: {result.error.get('message')}"[:300]
    return result.outcome
