"""Runs all stages of a plan side by side and brings what they told together."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import msgspec
import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.matrix.batch import Told
from kernel_audit.matrix.plan import GENERIC, TPU_INTERPRETER
from kernel_audit.matrix.stages import Observed, Stages, expectation_id, keys_of, shards
from kernel_audit.records import CellPlan, Plan, ProgramPlan


def observe(stages: Stages, plan: Plan) -> Observed:
    """Everything that the plan asks for. Work on two or more workers at once."""
    laboratory, audit = stages.laboratory, stages.audit
    seen = Observed()
    captures = [
        laboratory.start(stages.capture, plan, number, [each.key for each in part], "candidate")
        for number, part in enumerate(_split(plan.programs, laboratory.size))
    ]
    refusals = laboratory.start(stages.refusals)
    references = baseline_plan(plan)
    keys = [each.key for each in references.programs]
    baseline_captures = {
        each.name: laboratory.start(stages.capture, references, 0, keys, each.name) for each in audit.baselines
    }
    lifted: Future[dict[str, Told]] | None = None
    if audit.oracle.kind == "lifted" or audit.agreement.kind == "derived":
        lifted = laboratory.start(stages.lift, references, keys)
    for each in captures:
        seen.programs.update(each.result())
    _note_sources(seen, seen.programs)
    candidate_runs = _start_candidate(stages, plan, seen)
    captured = {name: each.result() for name, each in baseline_captures.items()}
    for told in captured.values():
        _note_sources(seen, told)
    seen.result_dtypes = _result_dtypes(audit, references, captured[audit.baselines[0].name])
    baseline_runs = _start_baselines(stages, references, captured)
    expectations = _start_expectations(stages, plan, references, seen, lifted.result() if lifted else {})
    for each in candidate_runs:
        seen.cells.update(each.result())
    _note_sources(seen, seen.cells)
    for each in expectations:
        seen.expectations.update(each.result())
    for name, each in baseline_runs.items():
        seen.baselines[name] = each.result()
    seen.refusals = refusals.result()
    _note_sources(seen, seen.refusals)
    return seen


def baseline_plan(plan: Plan) -> Plan:
    """What a baseline runs: each shape, dtype and mode of the plan once, on every fixture that a cell has there."""
    programs: dict[tuple[Any, ...], ProgramPlan] = {}
    cells: dict[str, CellPlan] = {}
    for cell in plan.cells:
        program = plan.program(cell.program)
        identity = (tuple(program.dims.items()), tuple(program.binding.items()), msgspec.json.encode(program.mode))
        known = programs.get(identity)
        if known is None:
            known = msgspec.structs.replace(program, key=f"b{len(programs):03d}", configuration={}, engine=GENERIC)
            programs[identity] = known
        name = expectation_id(plan, cell)
        cells.setdefault(name, CellPlan(id=name, program=known.key, fixture=cell.fixture))
    return msgspec.structs.replace(plan, programs=list(programs.values()), cells=list(cells.values()))


def captured_digest(told: Told | None) -> str | None:
    """The digest of a captured program, or None when it was not captured or the libraries were tampered with."""
    if told is None or told.outcome != "finished" or told.value.get("tampered"):
        return None
    record = told.value.get("record")
    return record["digest"] if record else None


def _note_sources(seen: Observed, told: dict[str, Told]) -> None:
    """Files that subject workers loaded: what a worker says is a path to read, never content."""
    for each in told.values():
        seen.source_files.update({**each.imported.get("sources", {}), **each.value.get("sources", {})})


def _split(programs: list[ProgramPlan], count: int) -> list[list[ProgramPlan]]:
    return [part for part in (programs[number::count] for number in range(count)) if part]


def _start_candidate(stages: Stages, plan: Plan, seen: Observed) -> list[Future[dict[str, Told]]]:
    laboratory = stages.laboratory
    digests = {key: digest for key, told in seen.programs.items() if (digest := captured_digest(told))}
    runnable = [cell for cell in plan.cells if cell.program in digests]
    started = []
    simulated = [cell for cell in runnable if cell.program in keys_of(plan, runnable, TPU_INTERPRETER)]
    for number, part in enumerate(shards(simulated, laboratory.size)):
        started.append(laboratory.start(stages.simulate, plan, f"simulate-{number}", part, digests))
    exported = [
        cell
        for cell in runnable
        if plan.program(cell.program).engine == GENERIC
        and "generic" in seen.programs[cell.program].value["record"]["exports"]
    ]
    for number, part in enumerate(shards(exported, laboratory.size)):
        started.append(laboratory.start(stages.run_bytes, plan, f"check-{number}", part, seen.programs, candidate=True))
    return started


def _start_baselines(
    stages: Stages, references: Plan, captured: dict[str, dict[str, Told]]
) -> dict[str, Future[dict[str, Told]]]:
    started = {}
    for name, told in captured.items():
        ready = {key for key, each in told.items() if captured_digest(each) and each.value["record"]["exports"]}
        cells = [cell for cell in references.cells if cell.program in ready]
        started[name] = stages.laboratory.start(
            stages.run_bytes, references, f"baseline-{name}", cells, told, candidate=False
        )
    return started


def _start_expectations(
    stages: Stages, plan: Plan, references: Plan, seen: Observed, lifted: dict[str, Told]
) -> list[Future[dict[str, Told]]]:
    wanted: list[list[dict[str, Any]]] = [[] for _ in range(stages.laboratory.size)]
    for cell in references.cells:
        program = references.program(cell.program)
        if program.key not in seen.result_dtypes:
            seen.no_expectation[cell.id] = "the first baseline was not captured, and the audit states no results"
            continue
        item: dict[str, Any] = {
            "id": cell.id,
            "fixture": cell.fixture,
            "binding": program.binding,
            "mode": program.mode,
            "results": seen.result_dtypes[program.key],
        }
        if lifted:
            told = lifted[program.key]
            if told.outcome != "finished" or "operands" not in told.value:
                fault = told.value.get("fault", {"what": told.outcome, "got": told.note})
                seen.no_expectation[cell.id] = ": ".join(str(each) for each in (fault["what"], fault["got"]) if each)
                continue
            item |= {"lifted": str(told.folder), "program": program.key, "lifted_operands": told.value["operands"]}
        # Fixtures of one program stay together: a lifted one is compiled once.
        wanted[references.programs.index(program) % len(wanted)].append(item)
    parts = [part for part in wanted if part]
    return [stages.laboratory.start(stages.expect, plan, f"expect-{number}", part) for number, part in enumerate(parts)]


def _result_dtypes(audit: Audit, references: Plan, captured: dict[str, Told]) -> dict[str, list[str]]:
    """Result dtypes by baseline program key: as the contract states them, else as the first baseline gives them."""
    found = {}
    for program in references.programs:
        if audit.results:
            found[program.key] = [program.binding.get(each.dtype, each.dtype) for each in audit.results]
            continue
        told = captured.get(program.key)
        if told is not None and captured_digest(told):
            results = told.value["record"]["results"]
            found[program.key] = [np.dtype(each.partition("[")[0]).name for each in results]
    return found
