"""Several items a worker; after a death one item a worker: a crash costs the item in which it happened, no other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_audit.errors import EnvironmentFault, InternalError
from kernel_audit.matrix.laboratory import Done, Laboratory
from kernel_audit.matrix.loading import IMPORT

# After so many items have ended alike, twice each, others are recorded without a run: those of the same program, and all of
# a batch of which nothing has finished and so many programs have ended.
ENOUGH = 2
DEATHS = ("crashed", "timed-out", "out-of-memory", "forged-output")


@dataclass(frozen=True)
class Item:
    """One thing to do in a worker: a step's id, and the group (a program) that may be at fault as a whole."""

    id: str
    group: str


@dataclass(frozen=True)
class Told:
    """What became of an item: "finished" with a value and arrays in `folder`, or how its worker died.

    "import-failed": the module of the candidate raised while it was imported; `note` holds what it said. `imported` is
    what the worker told after the import.
    """

    outcome: str
    value: Mapping[str, Any]
    folder: Path
    note: str = ""
    imported: Mapping[str, Any] = field(default_factory=dict)


Call = Callable[[list[Item]], tuple[str, Mapping[str, Any]]]


def run_items(
    laboratory: Laboratory,
    name: str,
    items: list[Item],
    call: Call,
    *,
    jax_config: Mapping[str, Any] | None = None,
    reference: bool = False,
) -> dict[str, Told]:
    """Every item with what became of it. `call` gives the job's function and arguments for some of the items."""
    told: dict[str, Told] = {}
    if not items:
        return told

    def run(which: list[Item], label: str) -> Done:
        function, arguments = call(which)
        return laboratory.run(label, function, arguments, jax_config=jax_config, reference=reference)

    first = run(items, name)
    left = _take(first, items, told)
    if not left:
        return told
    if first.result.step_in_progress in (IMPORT, None):
        again = run([left[0]], f"{name}-again")
        if _take(again, [left[0]], told) and again.result.step_in_progress in (IMPORT, None):
            told.update({each.id: _death(again, "while the module was imported") for each in left})
            return told
        left = [each for each in left if each.id not in told]
    _one_by_one(left, first, name, run, told)
    return told


def _one_by_one(
    left: list[Item], first: Done, name: str, run: Callable[[list[Item], str], Done], told: dict[str, Told]
) -> None:
    ended: Counter[tuple[str, str]] = Counter()
    for number, item in enumerate(left):
        if known := _known_ending(item, ended, told):
            told[item.id] = Told(known, {}, first.folder, f"not run: {ENOUGH} others ended so, twice each")
            continue
        alone = run([item], f"{name}-alone-{number}")
        if _take(alone, [item], told) and item.id != first.result.step_in_progress:
            # It was not the item that killed the batch, so this was its first death: once more.
            alone = run([item], f"{name}-alone-{number}-again")
            _take(alone, [item], told)
        if item.id not in told:
            told[item.id] = _death(alone, "")
            ended[item.group, told[item.id].outcome] += 1


def _known_ending(item: Item, ended: Counter[tuple[str, str]], told: Mapping[str, Told]) -> str | None:
    """How an item would end by all that was seen, or None where that is open."""
    for (group, outcome), count in ended.items():
        if group == item.group and count >= ENOUGH:
            return outcome
    if any(each.outcome == "finished" for each in told.values()):
        return None
    groups = Counter(outcome for _, outcome in ended)  # one bad program says nothing of the others, several do
    return next((outcome for outcome, count in groups.items() if count >= ENOUGH), None)


def _take(done: Done, items: list[Item], told: dict[str, Told]) -> list[Item]:
    """Moves finished items to `told` and gives those that are left. Raises on a fault that is ours."""
    _raise_our_faults(done)
    if done.result.outcome == "forged-output":
        told.update({each.id: _death(done, "") for each in items})
        return []
    if _import_failed(done):
        told.update({each.id: _death(done, "") for each in items})
        return []
    for item in items:
        if item.id in done.result.steps:
            imported = done.result.steps.get(IMPORT) or {}
            told[item.id] = Told("finished", done.result.steps[item.id] or {}, done.folder, "", imported)
    return [each for each in items if each.id not in told]


def _import_failed(done: Done) -> bool:
    return done.result.outcome == "raised" and done.result.step_in_progress == IMPORT


def _raise_our_faults(done: Done) -> None:
    result = done.result
    if result.outcome != "raised":
        return
    error = result.error or {}
    if stated := result.audit_error():
        raise stated
    if result.step_in_progress == IMPORT:
        if error.get("type") in ("ModuleNotFoundError",):
            raise EnvironmentFault(
                "a module that the candidate needs is not installed",
                stage="import",
                where=str(error.get("where") or "the candidate's module"),
                expected="an importable module",
                got=f"{error.get('type')}: {error.get('message')}",
                next_command="install it into the environment of kernel-audit, then run again",
            )
        return
    raise InternalError(
        "a job raised",
        stage="observe",
        where=str(error.get("where")),
        got=f"{error.get('type')}: {error.get('message')}",
    )


def _death(done: Done, when: str) -> Told:
    result = done.result
    if _import_failed(done):
        error = result.error or {}
        return Told("import-failed", {}, done.folder, f"{error.get('type')}: {error.get('message')}")
    outcome = result.outcome if result.outcome in DEATHS else "crashed"
    return Told(outcome, {}, done.folder, " ".join(each for each in (_how(done), when) if each))


def _how(done: Done) -> str:
    result = done.result
    if result.outcome == "timed-out":
        return "no progress within the deadline"
    if result.outcome in ("out-of-memory", "forged-output"):
        return str((result.error or {}).get("message", ""))[:200]
    if result.signal:
        return f"signal {result.signal}"
    return f"exit code {result.exit_code}" if result.exit_code is not None else ""
