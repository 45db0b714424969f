"""The baseline hunter: respells each baseline, checks by numbers, compiles, ranks by the static model.

What it finds is offered, never put in a baseline's place: its floor is a model, and its author decides.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from kernel_audit.records import CompiledRecord, Respelling
from kernel_audit.target.bench import Bench, Side, sides_of
from kernel_audit.target.described import DescribedTarget
from kernel_audit.target.spellings import NARROW, WIDE, Spelling, spellings_of


def hunt(bench: Bench, targets: list[DescribedTarget]) -> list[Respelling]:
    """Respellings of every baseline for every target, in order of their floors; those that are wrong or do not compile last.

    The baselines as they are stand among them as "as written", for comparison.
    """
    baselines = [each for each in sides_of(bench.audit) if not each.tuned]
    spellings = spellings_of(bench.audit)
    found = []
    for side in baselines:
        checked = _checked(bench, side, spellings)
        for target in targets:
            found += list(_compiled(bench, target, side, spellings, checked))
    return sorted(found, key=_rank)


def _checked(bench: Bench, side: Side, spellings: list[Spelling]) -> dict[str, dict[str, Any]]:
    """What the check said of "NAME NUMBER", the number being that of the dtype."""
    modes = bench.audit.modes
    mode = {name: choices[0] for name, choices in modes.items()}
    result = bench.check(side, spellings, mode)
    ended = f"the check ended as {result.outcome}: {dict(result.error or {}).get('message', '')}"[:300]
    names = [f"{each.name} {number}" for each in spellings for number in range(len(bench.audit.dtype_bindings()))]
    return {name: result.steps.get(name) or {"correct": None, "note": ended} for name in names}


def _compiled(
    bench: Bench, target: DescribedTarget, side: Side, spellings: list[Spelling], checked: dict[str, dict[str, Any]]
) -> Iterator[Respelling]:
    sides = [side, *(Side(f"{side.name}, {each.name}", side.function, False, spelling=each) for each in spellings)]
    records = bench.compile(target, sides, in_step=False)
    by_side = {name: list(group) for name, group in itertools.groupby(records, key=lambda each: each.side)}
    dtypes = len(bench.audit.dtype_bindings())
    for record in by_side[side.name]:
        yield Respelling(name="as written", of=side.name, how="the baseline itself", correct=True, record=record)
    for spelling, other in zip(spellings, sides[1:], strict=True):
        for index, record in enumerate(by_side[other.name]):
            told = checked[f"{spelling.name} {index % dtypes}"]
            if spelling.kind == WIDE and record.dtype not in NARROW:
                continue  # the same program
            yield Respelling(
                name=spelling.name,
                of=side.name,
                how=spelling.how,
                correct=told["correct"],
                error_max=told.get("error_max"),
                agreement=told.get("agreement", ""),
                record=record,
                note=told.get("note", "") or _refusal(record),
            )


def _refusal(record: CompiledRecord) -> str:
    return f"refused: {record.reason.text}"[:200] if record.reason is not None else ""


def _rank(each: Respelling) -> tuple[Any, ...]:
    record = each.record
    floor = record.floor_seconds if record is not None else None
    place = (record.target, record.dtype) if record is not None else ("", "")
    return (
        *place,
        each.correct is not True,
        floor is None,
        floor if floor is not None else math.inf,
        each.of,
        each.name,
    )
