"""The plan: every pair of choices, what is left out and why, the same plan again, sequences and engines."""

from __future__ import annotations

from itertools import combinations, product

import pytest
import sample_evidence
from sample_evidence import replaced

from kernel_audit.contract import Sequence, Values
from kernel_audit.contract.tuning import configurations
from kernel_audit.contract.words import on
from kernel_audit.errors import AuditFileError
from kernel_audit.fixture import hostile_shapes, programs
from kernel_audit.matrix.check import engines_of
from kernel_audit.matrix.plan import (
    GENERIC,
    TPU_INTERPRETER,
    TPU_INTERPRETER_LIMIT,
    make_plan,
    sequence_plan,
    size_text,
    text_of,
    uncovered_pairs,
)

ENGINES = [GENERIC, TPU_INTERPRETER]
FAMILIES = ("normal", "ties", "overflow", "fresh")
AUDIT = replaced(
    sample_evidence.small_audit(),
    modes={"causal": [False, True]},
    values=Values(families=list(FAMILIES)),
    program_limit=64,
)
BLOCKS = {"block=8x128": [(8, 128)], "block=16x256": [(16, 256), (2, 4)]}


def plan(seed: int = 5):
    return make_plan(AUDIT, BLOCKS, seed, engines=ENGINES)


def choices(each) -> dict[str, str]:
    return {
        "dims": text_of(each.dims),
        "dtype": each.dtype,
        "engine": each.engine,
        "block": text_of(each.configuration),
        "causal": str(each.mode["causal"]),
    }


def allowed(each: dict[str, str]) -> bool:
    dims = dict(part.split("=") for part in each["dims"].split(","))
    shape = tuple(int(dims[name]) for name in ("m", "n"))
    limit = min(
        AUDIT.program_limit, TPU_INTERPRETER_LIMIT if each["engine"] == TPU_INTERPRETER else AUDIT.program_limit
    )
    return max(programs(shape, block) for block in BLOCKS[each["block"]]) <= limit


def test_every_pair_of_choices_that_can_occur_occurs():
    made = plan()
    shapes = hostile_shapes(AUDIT, [block for each in BLOCKS.values() for block in each])
    factors = {
        "dims": [text_of(each) for each in shapes],
        "dtype": ["float32", "bfloat16"],
        "engine": ENGINES,
        "block": list(BLOCKS),
        "causal": ["False", "True"],
    }
    possible = [dict(zip(factors, row, strict=True)) for row in product(*factors.values())]
    wanted = {pair for row in possible if allowed(row) for pair in combinations(row.items(), 2)}
    used = {cell.program for cell in made.cells}
    rows = [choices(each) for each in made.programs if each.key in used and not each.key.startswith("lesson")]
    assert {pair for row in rows for pair in combinations(row.items(), 2)} >= wanted
    assert uncovered_pairs(made, AUDIT) == 0


def test_sizes_are_told():
    made = plan()
    shapes = hostile_shapes(AUDIT, [block for each in BLOCKS.values() for block in each])
    assert made.full_size == len(shapes) * 2 * 2 * 2 * 2 * len(FAMILIES)
    assert len(made.cells) < made.full_size / 4
    assert made.pairs > 0


def test_what_is_left_out_is_listed_each_with_its_reason():
    made = plan()
    shapes = hostile_shapes(AUDIT, [block for each in BLOCKS.values() for block in each])
    expected = set()
    for dims, engine, configuration in product(shapes, ENGINES, AUDIT.configurations()):
        row = {"dims": text_of(dims), "engine": engine, "block": text_of(configuration)}
        if not allowed(row):
            expected.add(f"{engine} {dims['m']}x{dims['n']} {text_of(configuration)}")
    assert expected
    assert {each.what for each in made.left_out} == expected
    assert all("programs, more than" in each.why for each in made.left_out)
    run = {f"{p.engine} {p.dims['m']}x{p.dims['n']} {text_of(p.configuration)}" for p in made.programs}
    assert not run & expected


def test_names_are_unique_and_the_plan_is_the_same_again():
    made = plan()
    for names in (
        [each.id for each in made.cells],
        [each.key for each in made.programs],
        [f.name for f in made.fixtures],
    ):
        assert len(set(names)) == len(names)
    assert made == plan()


def test_only_the_late_values_depend_on_the_late_seed():
    one, two = plan(1), plan(2)
    assert [each.id for each in one.cells] == [each.id for each in two.cells]
    changed = {a.family for a, b in zip(one.fixtures, two.fixtures, strict=True) if a.seed != b.seed}
    assert changed == {"fresh"}


def test_what_the_contract_promises_nothing_for_is_not_judged():
    judged = {each.family: each.judged for each in plan().fixtures}
    assert judged == {"normal": True, "ties": True, "overflow": False, "fresh": True}
    audit = replaced(AUDIT, values=Values(families=["non-finite"]))
    assert not any(f.judged for f in make_plan(audit, {}, 1, engines=[GENERIC]).fixtures if f.family == "non-finite")
    audit = replaced(audit, values=Values(families=["non-finite"], nonfinite="propagate"))
    assert all(f.judged for f in make_plan(audit, {}, 1, engines=[GENERIC]).fixtures)


def test_a_sequence_runs_in_the_first_mode_and_configuration_at_every_dtype():
    made = sequence_plan(AUDIT, "lesson")
    assert [each.name for each in made.fixtures] == ["lesson-1x1", "lesson-9x129"]
    assert made.fixtures[1].before == [{"m": 1, "n": 1}]
    assert {(each.dtype, each.engine, each.mode["causal"]) for each in made.programs} == {
        ("float32", TPU_INTERPRETER, False),
        ("bfloat16", TPU_INTERPRETER, False),
    }
    assert len(made.cells) == 4
    assert {each.id for each in made.cells} <= {each.id for each in plan().cells}
    assert made.left_out[0].what == "all other cells"


def test_a_sequence_is_not_taken_for_another_whose_name_begins_alike():
    twins = [
        Sequence(name="lesson", seed=1, shapes=[{"m": 1, "n": 1}]),
        Sequence(name="lesson-two", seed=2, shapes=[{"m": 9, "n": 129}]),
    ]
    made = sequence_plan(replaced(AUDIT, sequences=twins), "lesson")
    assert [each.name for each in made.fixtures] == ["lesson-1x1"]


@pytest.mark.parametrize(
    ("targets", "engines"),
    [
        (None, ENGINES),
        ([], ENGINES),
        (["tpu:v5e"], ENGINES),
        (["gpu:h200"], [GENERIC]),
        (["gpu:h200", "tpu:v5e"], ENGINES),
    ],
)
def test_the_tpu_interpreter_models_no_gpu(targets, engines):
    assert engines_of(replaced(AUDIT, targets=targets)) == engines


FORMS = [on("tpu", form=["tpu"], block=[[8, 128], [16, 256]]), on("gpu", form=["triton"], block=[[16, 64]])]
FORM_BLOCKS = {text_of(each): [tuple(each["block"])] for each in configurations(FORMS)}


def test_configurations_for_targets_meet_every_other_choice_where_they_can_run():
    audit = replaced(AUDIT, tuning=FORMS)
    made = make_plan(audit, FORM_BLOCKS, 5, engines=ENGINES)
    run = {(each.engine, text_of(each.configuration)) for each in made.programs}
    tpu = ["form=tpu,block=8x128", "form=tpu,block=16x256"]
    assert run >= {(engine, each) for engine in ENGINES for each in tpu} | {(GENERIC, "form=triton,block=16x64")}
    gpu = [each for each in made.programs if each.configuration["form"] == "triton"]
    assert {each.engine for each in gpu} == {GENERIC}
    assert {each.dtype for each in gpu} == {"float32", "bfloat16"}
    assert len({size_text(each.dims) for each in gpu}) == len({size_text(each.dims) for each in made.programs})
    families = {made.fixture(cell.fixture).family for cell in made.cells if "form=triton" in cell.id}
    assert families == set(FAMILIES)
    assert {"tpu-interpreter form=triton,block=16x64": "a configuration for no TPU"}.items() <= {
        each.what: each.why for each in made.left_out
    }.items()


@pytest.mark.parametrize(
    ("tuning", "engine", "form"),
    [(FORMS, TPU_INTERPRETER, "tpu"), (FORMS[::-1], TPU_INTERPRETER, "tpu"), (FORMS[1:], GENERIC, "triton")],
)
def test_a_sequence_runs_where_its_configuration_can(tuning, engine, form):
    found = sequence_plan(replaced(AUDIT, tuning=tuning), "lesson").programs
    assert {(each.engine, each.configuration["form"]) for each in found} == {(engine, form)}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"block": [8, 128], "buffers": 2}, "block=8x128,buffers=2"),
        ({}, "default"),
        ([[1, 2], 3], "1x2x3"),
        (True, "True"),
    ],
)
def test_configurations_as_text(value, text):
    assert text_of(value) == text


def test_a_pattern_that_no_cell_matches_names_near_words():
    from kernel_audit.matrix.check import _restricted

    made = plan()
    part = _restricted(made, "ties")
    assert part.cells and all("ties" in each.id for each in part.cells)
    assert {each.key for each in part.programs} == {each.program for each in part.cells}
    with pytest.raises(AuditFileError, match="no cell matches") as caught:
        _restricted(made, "generik")
    assert "did you mean 'generic'?" in str(caught.value.got)
