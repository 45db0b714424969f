"""A session put together from its processes. Nothing is judged here; `statistics.session_verdict` does that, anywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernel_audit.records import (
    BOUNDARY,
    ClockRecord,
    Session,
    SessionPlan,
    SessionScope,
    TimedProcess,
    TimedSide,
    digest_of,
)
from kernel_audit.statistics import log_ratios


def assemble(
    *,
    provenance: str,
    scope: SessionScope,
    clock: ClockRecord,
    second_clock: ClockRecord | None,
    sides: Sequence[TimedSide],
    plan: SessionPlan,
    processes: Sequence[TimedProcess],
    lost: Sequence[str] = (),
    boundary: str = BOUNDARY,
) -> Session:
    """The record of a session. Its id is a digest of what was asked, not of what came out. `lost` says which processes ended
    without samples and why: they are part of the record."""
    asked = {"sides": list(sides), "plan": plan, "scope": scope, "boundary": boundary}
    return Session(
        id=digest_of(asked)[7:23],
        provenance=provenance,
        scope=scope,
        boundary=boundary,
        clock=clock,
        second_clock=second_clock,
        sides=list(sides),
        plan=plan,
        processes=sorted(processes, key=lambda each: each.index),
        lost_processes=list(lost),
    )


def pilot_logs(processes: Sequence[TimedProcess], step_s: float) -> list[np.ndarray]:
    """Log ratios of the baseline against itself in a pilot; its comparison is not looked at."""
    columns = (each.control for each in processes)
    return [log_ratios(each.left_s, each.right_s, step_s) for each in columns if each.left_s]
