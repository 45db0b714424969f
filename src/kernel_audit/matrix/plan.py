"""The plan: which programs, which fixtures, which cells. Every pair of two choices, not the full product.

A program (shape, dtype, mode, configuration, engine) costs a compilation, a fixture on it next to nothing. So pairs are
covered in two layers: first programs so that every pair of their choices occurs, then value families over those programs so
that every family meets every choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

import msgspec

from kernel_audit.contract import Audit
from kernel_audit.fixture import hostile_shapes, programs, seed_of
from kernel_audit.matrix.pairs import cover_families, cover_pairs
from kernel_audit.records import CellPlan, Fixture, LeftOut, Plan, ProgramPlan

GENERIC = "generic"
TPU_INTERPRETER = "tpu-interpreter"
# The TPU interpreter with races takes 2 to 3 ms a program and grows faster than linearly (facts: jax-internals.md, 4).
TPU_INTERPRETER_LIMIT = 32


def for_gpus_alone(audit: Audit) -> bool:
    """Whether every device that could settle the audit is a GPU."""
    return bool(audit.targets) and all(each.startswith("gpu") for each in audit.targets or ())


def make_plan(
    audit: Audit,
    blocks: dict[str, list[tuple[int, ...]]],
    late_seed: int,
    *,
    engines: Iterable[str],
    derive: bool = True,
) -> Plan:
    """The matrix of an audit. `blocks` are the result's block shapes by configuration text (see `text_of`).

    `derive`: add the shapes that blocks make interesting to those that the audit states.
    """
    engines = list(engines)
    shapes = hostile_shapes(audit, [block for found in blocks.values() for block in found] if derive else [])
    factors = _factors(audit, shapes, engines)

    def possible(choice: dict[str, Any]) -> bool:
        return _not_run(audit, blocks, choice["dims"], choice["engine"], _configuration(choice)) is None

    chosen, pairs = cover_pairs(factors, possible)
    made = [_program(audit, index, choice) for index, choice in enumerate(chosen)]
    families = list(audit.values.families)
    given = cover_families([_labels(audit, each) for each in made], families)
    fixtures: dict[str, Fixture] = {}
    cells = [
        _cell(audit, program, family, late_seed, fixtures)
        for program, names in zip(made, given, strict=True)
        for family in names
    ]
    for program, fixture in sequence_cells(audit, len(made)):
        made.append(program)
        fixtures[fixture.name] = fixture
        cells.append(CellPlan(id=_cell_id(program, fixture.name), program=program.key, fixture=fixture.name))
    full = math.prod(len(values) for values in factors.values()) * len(families)
    return Plan(
        programs=made,
        fixtures=list(fixtures.values()),
        cells=cells,
        full_size=full,
        pairs=pairs,
        left_out=_left_out(audit, blocks, shapes, engines),
    )


def _left_out(
    audit: Audit, blocks: dict[str, list[tuple[int, ...]]], shapes: list[dict[str, int]], engines: list[str]
) -> list[LeftOut]:
    """Every combination that its engine does not run."""
    found: dict[str, LeftOut] = {}
    for dims, engine, configuration in product(shapes, engines, audit.configurations()):
        if reason := _not_run(audit, blocks, dims, engine, configuration):
            found[reason.what] = reason
    return list(found.values())


def sequence_plan(audit: Audit, name: str) -> Plan:
    """Only the cells of one fixture sequence of the audit, such as "lesson"."""
    alone = [each for each in audit.sequences if each.name == name]
    found = sequence_cells(msgspec.structs.replace(audit, sequences=alone), 0)
    cells = [
        CellPlan(id=_cell_id(each, fixture.name), program=each.key, fixture=fixture.name) for each, fixture in found
    ]
    fixtures = {fixture.name: fixture for _, fixture in found}
    return Plan(
        programs=[each for each, _ in found],
        fixtures=list(fixtures.values()),
        cells=cells,
        full_size=len(cells),
        pairs=0,
        left_out=[LeftOut(what="all other cells", why=f"--cells {name}")],
    )


def sequence_cells(audit: Audit, first: int) -> list[tuple[ProgramPlan, Fixture]]:
    """Each fixture of each sequence at each dtype, in the first mode and configuration that the TPU interpreter can run, there;
    in the generic one where no configuration is for a TPU."""
    found: list[tuple[ProgramPlan, Fixture]] = []
    configuration, engine = _first(audit)
    for sequence in audit.sequences:
        shapes = [{name: each[name] for name in audit.declared_dims} for each in sequence.shapes]
        for index, dims in enumerate(shapes):
            fixture = Fixture(
                name=f"{sequence.name}-{size_text(dims)}",
                dims=dims,
                family="normal",
                seed=sequence.seed,
                before=shapes[:index],
            )
            for binding in audit.dtype_bindings():
                program = ProgramPlan(
                    key=f"p{first + len(found):03d}",
                    dims=dims,
                    binding=binding,
                    mode={name: choices[0] for name, choices in audit.modes.items()},
                    configuration=configuration,
                    engine=engine,
                )
                found.append((program, fixture))
    return found


def stated_blocks(audit: Audit) -> dict[str, list[tuple[int, ...]]]:
    """Block shapes by configuration as the tuning states them: lists of sizes, one for each dimension of the result."""
    rank = len((audit.results or audit.operands)[0].dims)
    return {
        text_of(each): [tuple(value) for value in each.values() if isinstance(value, list) and len(value) == rank]
        for each in audit.configurations()
    }


def _first(audit: Audit) -> tuple[dict[str, Any], str]:
    """The first configuration for a TPU and its interpreter; else the first of all and the generic one."""
    for_tpus = audit.configurations_for("tpu")
    return (for_tpus[0], TPU_INTERPRETER) if for_tpus else (audit.configurations()[0], GENERIC)


def text_of(value: Any) -> str:
    """A configuration, or a value in one, as short text: "block=8x128,buffers=2"."""
    if isinstance(value, dict):
        return ",".join(f"{key}={text_of(each)}" for key, each in value.items()) or "default"
    if isinstance(value, list):
        return "x".join(text_of(each) for each in value)
    return str(value)


def size_text(dims: dict[str, int]) -> str:
    """Sizes in the order of the dimensions: "9x129"."""
    return "x".join(str(each) for each in dims.values())


def _factors(audit: Audit, shapes: list[dict[str, int]], engines: list[str]) -> dict[str, list[Any]]:
    factors: dict[str, list[Any]] = {"dims": shapes, "binding": audit.dtype_bindings(), "engine": engines}
    if isinstance(audit.tuning, dict):
        factors.update({f"tuning:{name}": choices for name, choices in audit.tuning.items()})
    else:  # choices of one target's product do not go with those of another's
        factors["configuration"] = audit.configurations()
    factors.update({f"mode:{name}": choices for name, choices in audit.modes.items()})
    return factors


def _part(choice: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {key.removeprefix(prefix): value for key, value in choice.items() if key.startswith(prefix)}


def _configuration(choice: dict[str, Any]) -> dict[str, Any]:
    return choice["configuration"] if "configuration" in choice else _part(choice, "tuning:")


def _not_run(
    audit: Audit,
    blocks: dict[str, list[tuple[int, ...]]],
    dims: dict[str, int],
    engine: str,
    configuration: dict[str, Any],
) -> LeftOut | None:
    """Why an engine does not run a configuration at these sizes; None where it does."""
    if engine == TPU_INTERPRETER and configuration not in audit.configurations_for("tpu"):
        return LeftOut(what=f"{engine} {text_of(configuration)}", why="a configuration for no TPU")
    where = f"{engine} {size_text(dims)} {text_of(configuration)}"
    elements = sum(math.prod(each.shape(dims)) for each in audit.operands)
    if elements > audit.element_limit:
        return LeftOut(what=where, why=f"operands of {elements} elements, more than {audit.element_limit}")
    array = (audit.results or audit.operands)[0]
    shape = array.shape(dims)
    count = max((programs(shape, block) for block in blocks.get(text_of(configuration), [])), default=1)
    limit = min(audit.program_limit, TPU_INTERPRETER_LIMIT if engine == TPU_INTERPRETER else 1 << 30)
    if count <= limit:
        return None
    return LeftOut(
        what=where,
        why=f"{count} programs, more than {limit}",
    )


def _program(audit: Audit, index: int, choice: dict[str, Any]) -> ProgramPlan:
    return ProgramPlan(
        key=f"p{index:03d}",
        dims=choice["dims"],
        binding=choice["binding"],
        mode=_part(choice, "mode:"),
        configuration=_configuration(choice),
        engine=choice["engine"],
    )


def _labels(audit: Audit, program: ProgramPlan) -> list[str]:
    """The choices that a family should meet: each as a word."""
    return [
        size_text(program.dims),
        program.dtype,
        program.engine,
        *[f"{key}={text_of(value)}" for key, value in {**program.mode, **program.configuration}.items()],
    ]


def _cell(audit: Audit, program: ProgramPlan, family: str, late_seed: int, fixtures: dict[str, Fixture]) -> CellPlan:
    name = f"{size_text(program.dims)}-{family}"
    if name not in fixtures:
        drawn = str(late_seed) if family == "fresh" else "frozen"
        fixtures[name] = Fixture(
            name=name,
            dims=program.dims,
            family=family,
            seed=seed_of(audit.name, name, drawn),
            judged=_judged(audit, family),
        )
    return CellPlan(id=_cell_id(program, name), program=program.key, fixture=name)


def _judged(audit: Audit, family: str) -> bool:
    if family == "overflow":  # a fused 2x + y is finite where two roundings give infinity
        return False
    return family != "non-finite" or audit.values.nonfinite == "propagate"


def _cell_id(program: ProgramPlan, fixture: str) -> str:
    return "/".join([program.engine, fixture, program.dtype, text_of({**program.mode, **program.configuration})])


def uncovered_pairs(plan: Plan, audit: Audit) -> int:
    """Pairs (family, choice) that no cell holds: 0 unless a choice was left out."""
    labels = {each.key: _labels(audit, each) for each in plan.programs}
    held = {(plan.fixture(cell.fixture).family, label) for cell in plan.cells for label in labels[cell.program]}
    wanted = {(family, label) for family in audit.values.families for found in labels.values() for label in found}
    return len(wanted - held)


def pair_count(sizes: list[int]) -> int:
    """How many pairs of choices there are between factors of these sizes."""
    return sum(left * right for left, right in combinations(sizes, 2))
