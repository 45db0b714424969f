"""docs/audits.md: its example is the file that it names, and each mistake in its table gives the error beside it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernel_audit import audit, complete_step, multiple, on, refuse, row_permutation, sequence, step_time, ulp, values
from kernel_audit.contract import declared
from kernel_audit.errors import AuditFileError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "audits.md").read_text("utf-8")


def ordinary(x):
    return x


def candidate(x, *, block=8):
    return x


def declare(**changes: Any) -> None:
    """Declares the audit of the page's example with some words changed."""
    words = {"baselines": [ordinary], "args": ["x: f32[m=64, n=256]"], "worth": step_time(None, 0.02)}
    audit(**{**words, **changes})(candidate)


def stepping(worth: Any = None, **changes: Any) -> None:
    """Declares an audit whose workload has some words changed."""
    right = {"examples": "m", "state": {"w": 0}, "loss": 1, "args": ["x: f32[m=64, n=8]", "w: f32[n]"]}
    declare(workload=complete_step("train.py:step", **{**right, **changes}), worth=worth or step_time(None, 0.02))


def twice() -> None:
    declare()
    declare()


# What stands in the table's first column -> something that makes the mistake.
MISTAKES: dict[str, Callable[[], None]] = {
    "`baselines=[]`": lambda: declare(baselines=[]),
    '`args=["x f32[m=64]"]`': lambda: declare(args=["x f32[m=64]"]),
    '`args=["x: f32[m, n=256]"]`': lambda: declare(args=["x: f32[m, n=256]"]),
    '`args=["x: f32[m=64]", "x: f32[m]"]`': lambda: declare(args=["x: f32[m=64]", "x: f32[m]"]),
    '`args=["x: f33[m=64]"]`': lambda: declare(args=["x: f33[m=64]"]),
    '`args=["x: f64[m=64]"]`': lambda: declare(args=["x: f64[m=64]"]),
    '`vary={"rows": any}`': lambda: declare(vary={"rows": any}),
    '`vary={"n": multiple(100)}`': lambda: declare(vary={"n": multiple(100)}),
    '`dtypes={"T": ["f32"]}`, and no operand of T': lambda: declare(dtypes={"T": ["f32"]}),
    '`tuning={"block": []}`': lambda: declare(tuning={"block": []}),
    '`tuning={"blok": [8]}`': lambda: declare(tuning={"blok": [8]}),
    '`tuning=["tpu"]`': lambda: declare(tuning=["tpu"]),
    '`tuning=[on("tpu", block=[8])]` and `targets=["gpu:h200"]`': lambda: declare(
        tuning=[on("tpu", block=[8])], targets=["gpu:h200"]
    ),
    '`frequencies={"float32": 0.9}`': lambda: declare(frequencies={"float32": 0.9}),
    '`ablations={"flat": 1}`': lambda: declare(ablations={"flat": 1}),
    '`ablations={"flat": {"blok": 8}}`': lambda: declare(ablations={"flat": {"blok": 8}}),
    '`ablations={"flat": ordinary}`, which does not take the tuning': lambda: declare(
        ablations={"flat": ordinary}, tuning={"block": [8]}
    ),
    '`ablations={"flat": {}}`': lambda: declare(ablations={"flat": {}}),
    '`ablations={"flat": {"block": 1}}`, block being a mode': lambda: declare(
        ablations={"flat": {"block": 1}}, modes={"block": [8, 16]}
    ),
    '`agreement=ulp(4, because="")`': lambda: declare(agreement=ulp(4, because="")),
    '`shapes=[{"m": 8}]`': lambda: declare(shapes=[{"m": 8}], vary={"m": any}),
    '`fixtures=[sequence("lesson", seed=1, shapes=[])]`': lambda: declare(
        fixtures=[sequence("lesson", seed=1, shapes=[])]
    ),
    '`values=values("ordinary")`': lambda: declare(values=values("ordinary")),
    '`invariants=[row_permutation("m")]` without `results`': lambda: declare(invariants=[row_permutation("m")]),
    '`refuses=[refuse("nothing", raises=ValueError)]`': lambda: declare(refuses=[refuse("nothing", raises=ValueError)]),
    "`worth=step_time(None, 2)`": lambda: declare(worth=step_time(None, 2)),
    '`workload="train.py:step"`': lambda: declare(workload="train.py:step"),
    '`workload=complete_step(..., examples="rows")`': lambda: stepping(examples="rows"),
    "`workload=complete_step(..., state={})`": lambda: stepping(state={}),
    '`workload=complete_step(..., state={"x": 0})`, x having examples': lambda: stepping(state={"x": 0}),
    '`workload=complete_step(..., state={"w": 0}, loss=0)`': lambda: stepping(loss=0),
    "`workload=complete_step(..., within=1)`": lambda: stepping(within=1),
    '`workload=complete_step(..., region="the loop")`': lambda: stepping(region="the loop"),
    '`workload=complete_step(..., remat="some")`': lambda: stepping(remat="some"),
    '`workload=complete_step(..., parameters="bf16")`, w being float32': lambda: stepping(parameters="bf16"),
    '`worth=step_time("other.py:step", 0.1)` beside a workload': lambda: stepping(step_time("other.py:step", 0.1)),
    '`part=" "`': lambda: declare(part=" "),
    "a lambda as a baseline": lambda: declare(baselines=[lambda x: x]),
    "the same name twice": twice,
}


@pytest.fixture(autouse=True)
def no_audits_left() -> Iterator[None]:
    """Each test declares into an empty list, and leaves it as it was."""
    before = list(declared)
    declared.clear()
    yield
    declared[:] = before


def stated_mistakes() -> dict[str, str]:
    """The page's table of mistakes."""
    table = PAGE.partition("| you write | it says |\n|---|---|\n")[2].partition("\n\n")[0]
    rows = [line.strip("|").split(" | ") for line in table.splitlines()]
    return {written.strip(): said.strip() for written, said in rows}


def test_the_table_and_the_mistakes_here_are_the_same():
    assert list(stated_mistakes()) == list(MISTAKES)


@pytest.mark.parametrize("written", MISTAKES)
def test_a_mistake_gives_the_error_beside_it(written: str):
    with pytest.raises(AuditFileError) as raised:
        MISTAKES[written]()
    error = raised.value
    assert error.what == stated_mistakes()[written]
    assert error.where and error.expected and error.got


def test_the_error_that_is_shown_is_the_real_one():
    with pytest.raises(AuditFileError) as raised:
        declare(vary={"rows": any})
    assert f"```text\n{raised.value.text()}\n```" in PAGE


def test_the_example_is_the_file_that_it_names():
    shown = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    assert shown[1] == (ROOT / "examples" / "silu.py").read_text("utf-8")


def test_every_word_is_explained():
    rows = re.findall(r"^\| `(\w+)` \| .* \| .* \|$", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(inspect.signature(audit).parameters)
