"""A whole session from worker processes: one fresh worker a process, one after the other. The parent imports no JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.errors import EnvironmentFault
from kernel_audit.records import ClockRecord, Session, SessionPlan, SessionScope, TimedProcess, TimedSide
from kernel_audit.timing.guards import BUSY_SHARE
from kernel_audit.timing.plan import PILOT_PAIRS, plan_session
from kernel_audit.timing.whole import assemble, pilot_logs
from kernel_audit.worker import Job, JobResult, Pool

PRELOAD = ("kernel_audit.timing.process_job",)
FUNCTION = "kernel_audit.timing.process_job:time_process"
PILOT_PROCESSES = 2


@dataclass(frozen=True)
class Timing:
    """What is timed: files of program bytes and names by role, the task (see `process_job.time_process`), the floors.

    `environment` must let JAX see the `target` (a worker's JAX_PLATFORMS is "cpu" otherwise).
    """

    programs: Mapping[str, Path]
    names: Mapping[str, str]
    task: Mapping[str, Any]
    floors_s: Mapping[str, float] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    import_path: tuple[str, ...] = ()
    busy_share: float = BUSY_SHARE
    target: str = "cpu"
    deadline_s: float = 300.0


def pilot(pool: Pool, folder: Path, timing: Timing, *, seed: int, input_sets: int) -> list[Any]:
    """Log ratios of the baseline against itself, from two processes; nothing of the candidate is looked at."""
    plan = plan_session(seed=seed, input_sets=input_sets, pairs=PILOT_PAIRS, processes=PILOT_PROCESSES)
    session = run_session(pool, folder, timing, plan)
    return pilot_logs(session.processes, session.clock.step_s)


def run_session(
    pool: Pool, folder: Path, timing: Timing, plan: SessionPlan, *, progress: Callable[[int], None] = lambda done: None
) -> Session:
    """Every process of `plan`, one at a time: two at once would disturb each other.

    A process that fails is no reason to repeat it: it is recorded as lost. Raises the error of a program that is refused (an
    interpreted kernel), and EnvironmentFault where no process gave samples.
    """
    told, lost = [], []
    for index in range(plan.processes):
        result = pool.run(_job(folder / f"process-{index}", timing, plan, index))
        error = result.audit_error()
        if error is not None:
            raise error
        if "process" in result.steps:
            told.append(result.steps["process"])
        else:
            lost.append(f"process {index}: {_how(result)}")
        progress(index + 1)
    if not told:
        raise EnvironmentFault(
            "no process of the session gave samples", stage="measure", where=timing.names["candidate"], got=lost[0]
        )
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


def _job(folder: Path, timing: Timing, plan: SessionPlan, index: int) -> Job:
    arguments = {
        "programs": {role: str(place.resolve()) for role, place in timing.programs.items()},
        "names": dict(timing.names),
        "task": dict(timing.task),
        "plan": msgspec.to_builtins(plan),
        "index": index,
        "floors_s": dict(timing.floors_s),
        "busy_share": timing.busy_share,
        "target": timing.target,
    }
    return Job(
        FUNCTION,
        arguments,
        folder,
        deadline_s=timing.deadline_s,
        environment=timing.environment,
        import_path=timing.import_path,
    )


def _how(result: JobResult) -> str:
    if result.error:
        return f"{result.outcome}, {result.error.get('type')}: {result.error.get('message')}"[:300]
    return result.outcome


def same_in_all(told: list[dict[str, Any]], key: str, kind: type) -> Any:
    """What all processes of a session tell alike. Raises EnvironmentFault where they ran in different surroundings."""
    values = [msgspec.convert(each[key], kind) for each in told]
    if any(each != values[0] for each in values):
        raise EnvironmentFault(
            "the processes of a session ran in different surroundings",
            stage="measure",
            where=key,
            expected=str(values[0]),
            got=str(next(each for each in values if each != values[0])),
        )
    return values[0]


def worst_clock(told: list[dict[str, Any]], key: str) -> ClockRecord:
    """Each process measures its clock; the session states the coarsest step and the dearest reading of them."""
    clocks = [msgspec.convert(each[key], ClockRecord) for each in told]
    return msgspec.structs.replace(
        clocks[0],
        step_s=max(each.step_s for each in clocks),
        overhead_s=max(each.overhead_s for each in clocks),
    )
