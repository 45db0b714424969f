"""What the checker prints: lines, the map of ownership, and the judgement of a benchmark's conduct."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from kernel_audit.course.benchmark_checks import SIDES, benchmark_checks
from kernel_audit.course.ownership import WHY_ZEROS, ownership_map
from kernel_audit.course.promises import WANTED, Check, wanted_at
from kernel_audit.course.stub_times import DEVICE_KIND, compile_s, sample_ms


def test_a_check_is_one_line() -> None:
    assert Check(1, "values").text == "ok   stage 1: values"
    assert Check(1, "values", note="a hint").text == "ok   stage 1: values (a hint)"
    assert Check(2, "values", "raised ValueError: a\n  b").text == "FAIL stage 2: values: raised ValueError: a b"


def test_stages_add_up() -> None:
    names = {stage: [each.name for each in wanted_at(stage)] for stage in ("1", "2", "3", "all")}
    assert names["1"] == ["blocked_axpy"]
    assert names["2"] == ["blocked_axpy", "fused_bias_relu"]
    assert names["3"] == names["all"] == [each.name for each in WANTED]


def test_ownership_map_marks_the_last_logical_row_and_column() -> None:
    lines = ownership_map((3, 5), (2, 4)).splitlines()
    row = next(each for each in lines if "last logical row 2" in each)
    column = next(each for each in lines if "last logical column 4" in each)
    assert row.startswith("   2 10 10 10 10   11 .. .. ..")
    assert row[column.index("v")] == "1" and row[column.index("v") + 3] == "."
    assert lines[-1] == "   3 .. .. .. ..   .. .. .. .."
    assert "maximum" in WHY_ZEROS and "mean" in WHY_ZEROS


def _refused(kind: str) -> dict[str, Any]:
    return {"raised": kind, "kinds": [kind, "Exception"], "message": "", "at": "", "compiled": [], "calls": {}}


def _run(count: int) -> dict[str, Any]:
    def side(name: str) -> dict[str, Any]:
        samples = [sample_ms(name, 5 + index) for index in range(count)]
        ordered = sorted(samples)
        return {
            "compile_seconds": compile_s(name)[0],
            "samples_ms": samples,
            "median_ms": (ordered[(count - 1) // 2] + ordered[count // 2]) / 2,
            "p90_ms": ordered[-(-9 * count // 10) - 1],
        }

    record = {name: side(name) for name in SIDES}
    record |= {"actual_backend": "tpu", "device_kind": DEVICE_KIND, "boundary": "inputs to output"}
    return {"compiled": list(SIDES), "uncompiled": [], "calls": dict.fromkeys(SIDES, 5 + count), "result": record}


def _told() -> dict[str, Any]:
    places = ("here", "other backend", "operands elsewhere", "second operand elsewhere")
    told = {name: _refused("RuntimeError") for name in places}
    told |= {name: _refused("ValueError") for name in ("no repeats", "four repeats")}
    return told | {"five repeats": _run(5), "default": _run(20)}


def _broken(told: dict[str, Any]) -> list[str]:
    return [each.text for each in benchmark_checks(3, told) if each.seen]


def test_a_benchmark_that_keeps_its_promises() -> None:
    assert _broken(_told()) == []
    assert len(list(benchmark_checks(3, _told()))) == 13


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda told: told["here"].pop("raised"), "nothing was raised"),
        (lambda told: told["here"].update(called=["side"]), "only after it had compiled or called"),
        (lambda told: told["here"].update(kinds=["TypeError"]), "expected RuntimeError"),
        (lambda told: told["default"]["result"]["baseline"].update(median_ms="fast"), "baseline.median_ms is 'fast'"),
        (lambda told: told["default"]["result"]["candidate"].update(compile_seconds=0.0), "compile_seconds 0"),
        (lambda told: told["default"]["result"].update(boundary=" "), "expected words"),
        (lambda told: told["default"]["result"]["baseline"].update(p90_ms=1e9), "p90_ms expected"),
        (lambda told: told["default"]["uncompiled"].append("baseline"), "without being compiled"),
        (lambda told: told.pop("default"), "the worker ended"),
    ],
)
def test_a_broken_promise_of_a_benchmark_is_told(change: Any, words: str) -> None:
    told = _told()
    change(told)
    broken = _broken(told)
    assert len(broken) == 1 and words in broken[0], broken


def test_no_two_samples_next_to_each_other_are_alike() -> None:
    for side in SIDES:
        samples = [sample_ms(side, index) for index in range(30)]
        assert all(abs(a - b) > 0.5 for a, b in pairwise(samples))
