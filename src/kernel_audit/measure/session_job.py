"""Job of one process of several sessions: each comparison in turn, so that a process's start is paid once for all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.measure.audit_task import task
from kernel_audit.records import SessionPlan
from kernel_audit.timing.process_job import measure_process, require_backend


def time_comparisons(
    steps: Any, *, comparisons: list[dict[str, Any]], index: int, target: str, busy_share: float
) -> None:
    """Process `index` of the sessions of all `comparisons`; its step of the job holds what `measure_process` gives.

    Each has "id", "programs" (files by role), "names", "task" (arguments of `audit_task.task`), "plan" and "floors_s".
    """
    require_backend(target)
    for each in comparisons:
        steps.begin(each["id"])
        data = {role: Path(place).read_bytes() for role, place in each["programs"].items()}
        made = task(**each["task"])
        plan = msgspec.convert(each["plan"], SessionPlan)
        if plan.check_every:
            made.expected((made.generate or made.make)(0))  # compiled now, and not while pairs are timed
        steps.finish(each["id"], measure_process(data, each["names"], made, plan, index, each["floors_s"], busy_share))
