"""A session held to its own plan: which pairs ran, in which order, on which operands, was fixed before the first sample."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from kernel_audit.records import VOID_REASONS, Session, SessionPlan, TimedProcess, encode
from kernel_audit.statistics import Step, process_seed, process_steps

KINDS = ("comparison", "control", "direction")


def plan_contradictions(session: Session) -> Iterator[str]:
    """Processes that are neither there nor lost, and pairs other than those planned. Voided pairs stay in the record."""
    plan = session.plan
    if not 0 < plan.processes <= plan.pairs:
        yield f"a plan of {plan.pairs} pairs in {plan.processes} processes"
        return
    if not plan.direction_pairs:
        yield "its plan has no pair whose answer is known"
    ran, lost = len(session.processes), len(session.lost_processes)
    if ran + lost != plan.processes:
        yield f"{plan.processes} processes were planned, {ran} are there, and {lost} are said to be lost"
    indices = [each.index for each in session.processes]
    if len(set(indices)) != ran or any(not 0 <= each < plan.processes for each in indices):
        yield f"processes {indices} of {plan.processes}"
    for process in session.processes:
        yield from _other_pairs(plan, process)


def _other_pairs(plan: SessionPlan, process: TimedProcess) -> Iterator[str]:
    if process.seed != process_seed(plan, process.index):
        yield f"process {process.index}: its seed is not that of the plan"
        return
    steps = _steps(encode(plan), process.seed)
    for kind in KINDS:
        columns, planned = getattr(process, kind), [each for each in steps if each.kind == kind]
        lengths = {len(getattr(columns, name)) for name in ("order", "inputs", "left_s", "right_s", "voided")}
        lengths |= {len(each) for each in (columns.left_second_s, columns.right_second_s) if each}
        if unknown := {*columns.voided} - {"", *VOID_REASONS}:
            yield f"process {process.index}: pairs of the {kind} voided as {sorted(unknown)}"
        if lengths != {len(planned)}:
            yield f"process {process.index}: {len(planned)} pairs of the {kind} were planned, there are {sorted(lengths)}"
        elif columns.order != [each.order for each in planned] or columns.inputs != [each.inputs for each in planned]:
            yield f"process {process.index}: the {kind} ran in another order, or on other operands, than was planned"
    yield from _fewer_checks(process, [each for each in steps if each.kind == "comparison" and each.checked])


def _fewer_checks(process: TimedProcess, planned: list[Step]) -> Iterator[str]:
    """Results of timed calls that were chosen beforehand, and that nobody judged."""
    fresh = sum(each.inputs < 0 for each in planned)
    for role in ("candidate", "baseline") if planned else ():
        checks = [each for each in process.checks if each.role == role]
        found = (sum(each.checked for each in checks), sum(each.fresh for each in checks))
        if found[0] < len(planned) or found[1] < fresh:
            yield (
                f"process {process.index}: {len(planned)} results of the {role} were to be judged, {fresh} of them on fresh "
                f"operands; {found[0]} were, {found[1]} of them fresh"
            )


@lru_cache(maxsize=256)
def _steps(plan: bytes, seed: int) -> tuple[Step, ...]:
    return tuple(process_steps(msgspec.json.decode(plan, type=SessionPlan), seed))
