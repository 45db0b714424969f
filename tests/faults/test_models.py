"""Every planted fault of a model file breaks the promise named for it; no honest variant is accused.

By default a few that run quickly; one in eight of the others in the slow run; all of them in the exhaustive run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent / "models"))

from sampling import sampled
from table import BASE, FAULTY, HONEST, Model

from kernel_audit.conduct import Question, check
from kernel_audit.course.checker import Checker
from kernel_audit.course.promises import WANTED, Check
from kernel_audit.decision import exit_code

SEED = 40_961
QUICK = {
    "four_warm_ups",
    "sample_not_awaited",
    "maximum_for_p90",
    "first_operand_only",
    "more_keys",
    "clock_of_timeit",
}


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checker]:
    made = Checker(tmp_path_factory.mktemp("models"), workers=1, deadline_s=30.0)
    yield made
    made.close()


def _broken(checker: Checker, model: Model, folder: Path) -> list[Check]:
    path = folder / "my_model.py"
    path.write_text(model.text, "utf-8")
    wanted = next(each for each in WANTED if each.name == model.function)
    return [each for each in checker.check(path, wanted, seed=SEED).checks if each.seen]


def _name(model: Model) -> str:
    return f"{model.function}-{model.name}"


def _few_quick(models: list[Model]) -> list[Any]:
    return sampled(models, _name, quick=lambda _, each: each.name in QUICK, slow_step=8)


@pytest.mark.parametrize("model", _few_quick(FAULTY))
def test_fault_breaks_the_promise_named_for_it(model: Model, checker: Checker, tmp_path: Path) -> None:
    broken = _broken(checker, model, tmp_path)
    promises = [each.promise for each in broken]
    assert any(words in promise for words in model.told_by for promise in promises), [each.text for each in broken][:12]


@pytest.mark.parametrize("model", _few_quick(HONEST))
def test_honest_variant_is_not_accused(model: Model, checker: Checker, tmp_path: Path) -> None:
    assert [each.text for each in _broken(checker, model, tmp_path)] == []


def test_the_table_is_as_large_as_promised_and_changes_one_place_each() -> None:
    assert len(FAULTY) >= 60 and len(HONEST) >= 15
    assert len({(each.function, each.name) for each in [*FAULTY, *HONEST]}) == len(FAULTY) + len(HONEST)
    assert len({(each.function, each.text) for each in [*FAULTY, *HONEST]}) == len(FAULTY) + len(HONEST)
    assert all(each.told_by for each in FAULTY)
    assert BASE.read_text("utf-8") not in {each.text for each in [*FAULTY, *HONEST]}


FUSED = [each for each in [*FAULTY, *HONEST] if each.function == "fused_bias_relu"]


@pytest.mark.parametrize("model", sampled(FUSED, _name, quick=lambda *_: False, slow_step=12))
def test_the_audit_gives_the_verdict_of_the_checker(model: Model, tmp_path: Path) -> None:
    """One engine, two faces: `kernel-audit check bias-relu --candidate FILE:fused_bias_relu` breaks and keeps the same."""
    (tmp_path / "my_model.py").write_text(model.text, "utf-8")
    asked = Question(audit="bias-relu", candidate=f"{tmp_path / 'my_model.py'}:fused_bias_relu", quick=True)
    assert exit_code(check(asked, lambda *_: None).decision) == (model in FAULTY)
