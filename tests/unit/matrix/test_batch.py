"""Several items a worker: what a death costs, told by a laboratory that only pretends to run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kernel_audit.errors import AuditFileError, EnvironmentFault, InternalError
from kernel_audit.matrix.batch import ENOUGH, Item, run_items
from kernel_audit.matrix.laboratory import Done
from kernel_audit.matrix.loading import IMPORT
from kernel_audit.worker import JobResult

NAMES = ("a", "b", "c", "d")


@dataclass
class Pretended:
    """A laboratory in which the items of `deadly` end their worker, `times` times; and the import does, when asked."""

    deadly: dict[str, str] = field(default_factory=dict)
    times: int = 99
    imports: list[str] = field(default_factory=list)  # how the import ends, run after run; then it succeeds
    error: dict[str, str] | None = None
    asked: list[tuple[str, list[str]]] = field(default_factory=list)
    deaths: dict[str, int] = field(default_factory=dict)

    def run(self, name, function, arguments, *, jax_config=None, reference=False) -> Done:
        items = arguments["items"]
        self.asked.append((name, items))
        if self.imports:
            return self._ended(self.imports.pop(0), IMPORT, {})
        steps = {IMPORT: {"sources": {}}}
        for item in items:
            if item in self.deadly and self.deaths.get(item, 0) < self.times:
                self.deaths[item] = self.deaths.get(item, 0) + 1
                return self._ended(self.deadly[item], item, steps)
            steps[item] = {"value": item}
        return Done(JobResult("finished", steps=steps), Path(name))

    def _ended(self, outcome: str, step: str, steps: dict) -> Done:
        signal = 11 if outcome == "crashed" else None
        return Done(JobResult(outcome, error=self.error, signal=signal, steps=steps, step_in_progress=step), Path(step))


def run(laboratory: Pretended, names: tuple[str, ...] = NAMES, group: str = ""):
    items = [Item(each, group or each) for each in names]
    return run_items(laboratory, "job", items, lambda some: ("module:function", {"items": [each.id for each in some]}))


def test_all_in_one_worker_where_none_dies():
    laboratory = Pretended()
    told = run(laboratory)
    assert [each.outcome for each in told.values()] == ["finished"] * 4
    assert told["a"].value == {"value": "a"} and told["a"].imported == {"sources": {}}
    assert laboratory.asked == [("job", list(NAMES))]


def test_nothing_to_do_asks_nobody():
    laboratory = Pretended()
    assert run(laboratory, ()) == {} and laboratory.asked == []


@pytest.mark.parametrize("outcome", ["crashed", "timed-out", "out-of-memory"])
def test_a_death_costs_its_own_item(outcome):
    laboratory = Pretended({"b": outcome}, error={"message": "no memory left"})
    told = run(laboratory)
    assert {name: each.outcome for name, each in told.items()} == {
        "a": "finished",
        "b": outcome,
        "c": "finished",
        "d": "finished",
    }
    assert laboratory.deaths == {"b": 2}  # re-run once, alone
    assert ("job-alone-0", ["b"]) in laboratory.asked
    assert told["b"].note


def test_a_death_that_does_not_come_again_costs_nothing():
    laboratory = Pretended({"b": "crashed"}, times=1)
    assert {each.outcome for each in run(laboratory).values()} == {"finished"}


def test_every_death_gets_its_second_chance():
    laboratory = Pretended({"b": "crashed", "d": "timed-out"})
    told = run(laboratory)
    assert [told[each].outcome for each in NAMES] == ["finished", "crashed", "finished", "timed-out"]
    assert laboratory.deaths == {"b": 2, "d": 2}
    assert run(Pretended({"d": "crashed"}, times=1))["d"].outcome == "finished"


def test_after_enough_deaths_of_one_group_the_others_are_recorded_without_a_run():
    names = tuple("abcdefgh")
    laboratory = Pretended(dict.fromkeys(names, "timed-out"))
    told = run(laboratory, names, group="p000")
    assert {each.outcome for each in told.values()} == {"timed-out"}
    assert len(laboratory.deaths) == ENOUGH
    assert [each.note.startswith("not run") for each in told.values()].count(True) == len(names) - ENOUGH


def test_other_groups_go_on():
    laboratory = Pretended(dict.fromkeys("abc", "crashed"))
    items = [Item(each, "bad") for each in "abc"] + [Item(each, "good") for each in "de"]
    told = run_items(laboratory, "job", items, lambda some: ("m:f", {"items": [each.id for each in some]}))
    assert [told[each].outcome for each in "abcde"] == ["crashed"] * 3 + ["finished"] * 2


def test_deaths_at_import_are_told_of_every_item_after_a_second_try():
    laboratory = Pretended(imports=["crashed"] * 9)
    told = run(laboratory)
    assert {each.outcome for each in told.values()} == {"crashed"}
    assert all("while the module was imported" in each.note for each in told.values())
    assert len(laboratory.asked) == 2


def test_one_death_at_import_costs_nothing():
    laboratory = Pretended(imports=["timed-out"])
    assert {each.outcome for each in run(laboratory).values()} == {"finished"}


def test_an_import_that_raises_is_the_candidates():
    laboratory = Pretended(imports=["raised"], error={"type": "ValueError", "message": "bad constant"})
    told = run(laboratory)
    assert {each.outcome for each in told.values()} == {"import-failed"}
    assert told["a"].note == "ValueError: bad constant"
    assert len(laboratory.asked) == 1


def test_a_module_that_is_not_installed_is_the_environments():
    error = {"type": "ModuleNotFoundError", "message": "No module named 'flash'", "where": "kernel.py:1"}
    with pytest.raises(EnvironmentFault, match="not installed") as caught:
        run(Pretended(imports=["raised"], error=error))
    assert "flash" in str(caught.value.got)


def test_a_forgery_spoils_everything_that_its_worker_said():
    told = run(Pretended({"c": "forged-output"}, error={"message": "a file of nobody"}))
    assert {each.outcome for each in told.values()} == {"forged-output"}
    assert all(each.value == {} for each in told.values())
    assert "a file of nobody" in told["a"].note


def test_an_error_in_five_parts_comes_through_and_another_one_is_our_fault():
    stated = AuditFileError("the oracle raised", stage="oracle", where="oracle.py").parts()
    with pytest.raises(AuditFileError, match="the oracle raised"):
        run(Pretended({"a": "raised"}, error=stated))
    with pytest.raises(InternalError, match="a job raised") as caught:
        run(Pretended({"a": "raised"}, error={"type": "KeyError", "message": "x", "where": "job.py:1"}))
    assert caught.value.exit_code == 70


def test_where_nothing_finishes_the_rest_is_recorded_without_a_run():
    names = tuple("abcdefgh")
    laboratory = Pretended(dict.fromkeys(names, "crashed"))
    told = run(laboratory, names)
    assert {each.outcome for each in told.values()} == {"crashed"}
    assert len(laboratory.deaths) == ENOUGH
