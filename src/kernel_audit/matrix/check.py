"""The correctness matrix of one audit, from plan to records: what `check` and `run` have in common."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as StillRunning
from dataclasses import dataclass
from typing import Any

import msgspec

from kernel_audit.contract import Audit, require_to_decide
from kernel_audit.errors import AuditFileError, near
from kernel_audit.matrix.assemble import Assembly
from kernel_audit.matrix.laboratory import Laboratory
from kernel_audit.matrix.observe import baseline_plan, observe
from kernel_audit.matrix.plan import GENERIC, TPU_INTERPRETER, for_gpus_alone, make_plan, sequence_plan, stated_blocks
from kernel_audit.matrix.stages import Observed, Stages
from kernel_audit.records import Plan

# (what is being done, steps done, steps in all or None)
Progress = Callable[[str, int, int | None], None]
POLL_S = 0.1


@dataclass(frozen=True)
class Matrix:
    """A finished correctness matrix. `source_files` are the files that the candidate loaded: label -> path."""

    plan: Plan
    records: Assembly
    source_files: dict[str, str]
    isolation: dict[str, Any]


def engines_of(audit: Audit) -> list[str]:
    """The interpreters that an audit's kernels can run in: the TPU interpreter models no GPU."""
    return [GENERIC] if for_gpus_alone(audit) else [GENERIC, TPU_INTERPRETER]


def check_matrix(
    audit: Audit,
    laboratory: Laboratory,
    late_seed: int,
    progress: Progress,
    *,
    only: str | None = None,
    quick: bool = False,
) -> Matrix:
    """Plans, observes and compares.

    `only` names a fixture sequence, or is a pattern that cell ids must contain. `quick` takes the shapes that the audit
    states and derives none from blocks. Raises AuditFileError for an audit without baselines or worth.
    """
    require_to_decide(audit)
    stages = Stages(audit, laboratory)
    plan = _plan(stages, late_seed, progress, only, quick)
    total = _steps(audit, plan)
    seen = _followed(laboratory, laboratory.start(observe, stages, plan), progress, total)
    progress("comparing", 0, None)
    return Matrix(plan, Assembly(audit, plan, seen), seen.source_files, laboratory.isolation)


def _plan(stages: Stages, late_seed: int, progress: Progress, only: str | None, quick: bool) -> Plan:
    if only is not None and any(each.name == only for each in stages.audit.sequences):
        return sequence_plan(stages.audit, only)
    progress("reading block shapes", 0, None)
    blocks = stated_blocks(stages.audit) if quick else stages.scout()
    plan = make_plan(stages.audit, blocks, late_seed, engines=engines_of(stages.audit), derive=not quick)
    return plan if only is None else _restricted(plan, only)


def _restricted(plan: Plan, pattern: str) -> Plan:
    """Only the cells whose id contains the pattern, and what they need."""
    if not plan.cells:
        return plan  # what was left out, and why, is said there
    cells = [each for each in plan.cells if pattern in each.id]
    if not cells:
        words = {word for each in plan.cells for word in each.id.split("/")}
        raise AuditFileError(
            "no cell matches",
            stage="plan",
            where=f"--cells {pattern}",
            expected="a part of a cell's id, such as " + plan.cells[0].id,
            got=near(pattern, words),
        )
    keys, fixtures = {each.program for each in cells}, {each.fixture for each in cells}
    return msgspec.structs.replace(
        plan,
        cells=cells,
        programs=[each for each in plan.programs if each.key in keys],
        fixtures=[each for each in plan.fixtures if each.name in fixtures],
    )


def _steps(audit: Audit, plan: Plan) -> int:
    """How many steps the workers will take, for a progress bar; deaths add a few."""
    references = baseline_plan(plan)
    per_baseline = len(references.programs) + len(references.cells)
    refusals = len(audit.refusals) + (len(audit.door.checks()) if audit.door else 0)
    return len(plan.programs) + len(plan.cells) + len(references.cells) + len(audit.baselines) * per_baseline + refusals


def _followed(laboratory: Laboratory, work: Future[Observed], progress: Progress, total: int) -> Observed:
    before = laboratory.finished_steps()
    while True:
        try:
            return work.result(timeout=POLL_S)
        except StillRunning:
            if work.done():
                raise
            progress("checking", min(laboratory.finished_steps() - before, total), total)
