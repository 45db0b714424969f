"""examples/lesson.py prints what files/lesson.txt holds, word for word; UPDATE_GOLDEN=1 on the slow test writes it again."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from types import ModuleType

import pytest
from course_scripts import loaded, run

GOLDEN = Path(__file__).parent / "files" / "lesson.txt"
SHAPES = ["1x1", "8x128", "9x129", "17x257"]
BFLOAT16_GAPS = [0.000862419605255127, 0.025217056274414062, 0.030788421630859375, 0.0292205810546875]
RECORDED = [
    *[
        f"kernel error 0.0 against the represented-input oracle, gap {gap} to"
        for each in BFLOAT16_GAPS
        for gap in (0.0, each)
    ],
    "TPU benchmark requires real TPU inputs; interpretation timings are not accepted",
    "order 8 0 7 1 6 2 5 3 4, result restored: identical",
    ": 1.0 1.0078125",
    *[f"{block} with {slots} slots: padded elements 4096" for block in ("(8, 128)", "(16, 256)") for slots in (2, 3)],
    "Mixed dtypes rejected",
    "Integer dtypes rejected",
    ": 1.1764705882352942 1.4285714285714286",
    "Figure",
    "No target time was measured",
]


@pytest.fixture
def lesson(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return loaded("examples/lesson.py", monkeypatch)


def golden_lines() -> list[str]:
    return GOLDEN.read_text("utf-8").splitlines()


def test_the_file_holds_every_recorded_fact_in_order():
    lines = golden_lines()
    assert len(lines) == len(RECORDED)
    assert [fact for fact, line in zip(RECORDED, lines, strict=True) if fact not in line] == []


@pytest.mark.parametrize("part", ["benchmark_refusal", "row_permutation", "rounding", "rejected_dtypes", "opportunity"])
def test_a_part_prints_its_lines(part: str, lesson: ModuleType):
    printed = list(getattr(lesson, part)())
    assert printed and set(printed) <= set(golden_lines())


def test_a_kernel_that_takes_mixed_dtypes_ends_the_lesson(lesson: ModuleType, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lesson, "pipelined_axpy", lambda x, y: x)
    with pytest.raises(SystemExit, match="not as the lesson has it: Mixed dtypes were accepted"):
        list(lesson.rejected_dtypes())


def test_a_kernel_that_moves_rows_ends_the_lesson(lesson: ModuleType, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lesson, "pipelined_axpy", lambda x, y: x.at[0].set(y[-1]))
    with pytest.raises(SystemExit, match="another order"):
        list(lesson.row_permutation())


def test_a_place_that_is_no_folder_is_named(lesson: ModuleType, tmp_path: Path, monkeypatch, capsys):
    (tmp_path / "taken").write_text("")
    monkeypatch.setattr("sys.argv", ["lesson.py", "--out", str(tmp_path / "taken")])
    with pytest.raises(SystemExit) as ended:
        lesson.main()
    assert ended.value.code == 2
    assert "taken" in capsys.readouterr().err


@pytest.mark.slow
def test_the_whole_lesson(tmp_path: Path):
    """As a reader runs it, from another folder."""
    done = run("examples/lesson.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(done.stdout, encoding="utf-8")
    assert done.stdout == GOLDEN.read_text("utf-8")
    folder = tmp_path / "evidence" / "lesson"
    assert sorted(each.name for each in folder.iterdir()) == [
        f"precision-gap.{kind}" for kind in ("json", "png", "svg")
    ]
    rows = json.loads((folder / "precision-gap.json").read_bytes())["rows"]
    assert [(each["fixture"], each["dtype"], each["representation_gap_max"]) for each in rows] == [
        (f"lesson-{shape}", dtype, gap)
        for shape, largest in zip(SHAPES, BFLOAT16_GAPS, strict=True)
        for dtype, gap in (("float32", 0.0), ("bfloat16", largest))
    ]
    assert (folder / "precision-gap.png").read_bytes().startswith(b"\x89PNG")
    assert re.match(r"<svg\b", (folder / "precision-gap.svg").read_text("utf-8"))
