"""The stages of an audit's observation: scout, capture, run, expect. Each gives plain data and arrays by place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from kernel_audit.contract import Audit, FunctionRef
from kernel_audit.matrix.batch import Item, Told, run_items
from kernel_audit.matrix.laboratory import Laboratory
from kernel_audit.matrix.plan import GENERIC, TPU_INTERPRETER, text_of
from kernel_audit.records import CellPlan, Fixture, Plan, ProgramPlan, digest_of

_JOBS = "kernel_audit.matrix"


@dataclass
class Observed:
    """What the workers told, by program key, cell id, refusal name and expectation id. `no_expectation` says why not."""

    programs: dict[str, Told] = field(default_factory=dict)
    cells: dict[str, Told] = field(default_factory=dict)
    baselines: dict[str, dict[str, Told]] = field(default_factory=dict)
    refusals: dict[str, Told] = field(default_factory=dict)
    expectations: dict[str, Told] = field(default_factory=dict)
    no_expectation: dict[str, str] = field(default_factory=dict)
    result_dtypes: dict[str, list[str]] = field(default_factory=dict)
    source_files: dict[str, str] = field(default_factory=dict)

    def candidate_files(self) -> dict[str, str]:
        """Files that the candidate loaded when it was imported or called, label -> path; none of a baseline's."""
        told = (*self.programs.values(), *self.cells.values(), *self.refusals.values())
        sources = [each for one in told for each in (one.imported.get("sources", {}), one.value.get("sources", {}))]
        return {label: path for each in sources for label, path in each.items()}


class Stages:
    """Runs the stages of one audit in a laboratory."""

    def __init__(self, audit: Audit, laboratory: Laboratory) -> None:
        self.audit = audit
        self.laboratory = laboratory
        self._roots = [str(each) for each in laboratory.roots]
        self._whole = {"audit": msgspec.to_builtins(audit), "roots": self._roots}
        # What jobs of the references are told: the contract without the candidate and what concerns it alone.
        nobody = FunctionRef(module="candidate", name="withheld")
        part = msgspec.structs.replace(
            audit, candidate=nobody, refusals=[], door=None, tuning={}, fixed={}, prediction=""
        )
        self._reference = {"audit": msgspec.to_builtins(part), "roots": self._roots[:1]}

    def scout(self) -> dict[str, list[tuple[int, ...]]]:
        """Block shapes of the first result by configuration text; empty where the candidate did not get that far."""
        binding = self.audit.dtype_bindings()[0]
        mode = {name: choices[0] for name, choices in self.audit.modes.items()}
        plans = {
            f"s{index:03d}": ProgramPlan(
                key=f"s{index:03d}",
                dims=self.audit.declared_dims,
                binding=binding,
                mode=mode,
                configuration=configuration,
                engine=TPU_INTERPRETER,
            )
            for index, configuration in enumerate(self.audit.configurations())
        }
        told = run_items(
            self.laboratory,
            "scout",
            [Item(key, key) for key in plans],
            lambda items: self._call("subject_job:scout", programs=[plans[each.id] for each in items]),
        )
        rank = len((self.audit.results or self.audit.operands)[0].dims)
        return {
            text_of(plans[key].configuration): _blocks(each.value.get("kernels", []), rank)
            for key, each in told.items()
        }

    def capture(self, plan: Plan, shard: int, keys: list[str], side: str) -> dict[str, Told]:
        """Programs of one side: records, and exported bytes of those that run from bytes."""
        return run_items(
            self.laboratory,
            f"capture-{side}-{shard}",
            [Item(key, key) for key in keys],
            lambda items: self._call(
                "subject_job:capture_programs",
                reference=side != "candidate",
                programs=[plan.program(each.id) for each in items],
                side=side,
            ),
            reference=side != "candidate",
        )

    def lift(self, plan: Plan, keys: list[str]) -> dict[str, Told]:
        """The first baseline in float64 and with noise, for the oracle worker."""
        return run_items(
            self.laboratory,
            "lift",
            [Item(key, key) for key in keys],
            lambda items: self._call(
                "lift_job:lift", reference=True, programs=[plan.program(each.id) for each in items]
            ),
            jax_config={"jax_enable_x64": True},
            reference=True,
        )

    def run_bytes(
        self, plan: Plan, name: str, cells: list[CellPlan], captured: Mapping[str, Told], *, candidate: bool
    ) -> dict[str, Told]:
        """Cells of exported programs, in a worker that never imports the candidate."""
        places = {key: str(told.folder) for key, told in captured.items()}

        def call(items: list[Item]) -> tuple[str, dict[str, Any]]:
            wanted = _chosen(cells, items)
            keys = dict.fromkeys(each.program for each in wanted)
            return f"{_JOBS}.check_job:run_from_bytes", {
                "audit": self._reference["audit"],
                "programs": msgspec.to_builtins([plan.program(key) for key in keys]),
                "cells": msgspec.to_builtins(wanted),
                "fixtures": _fixtures(plan, wanted),
                "places": {key: places[key] for key in keys},
                "thorough": candidate,
            }

        items = [Item(each.id, each.program) for each in cells]
        return run_items(self.laboratory, name, items, call, reference=not candidate)

    def simulate(self, plan: Plan, name: str, cells: list[CellPlan], digests: Mapping[str, str]) -> dict[str, Told]:
        """Cells in the TPU interpreter, in a subject worker."""

        def call(items: list[Item]) -> tuple[str, dict[str, Any]]:
            wanted = _chosen(cells, items)
            keys = dict.fromkeys(each.program for each in wanted)
            return self._call(
                "subject_job:simulate",
                programs=[plan.program(key) for key in keys],
                cells=wanted,
                fixtures=_fixtures(plan, wanted),
                digests={key: digests[key] for key in keys},
            )

        return run_items(self.laboratory, name, [Item(each.id, each.program) for each in cells], call)

    def refusals(self) -> dict[str, Told]:
        """Every promised refusal, and the candidate's own door to a target."""
        names = [each.name for each in self.audit.refusals]
        names += self.audit.door.checks() if self.audit.door else []
        wanted = {each.name: each for each in self.audit.refusals}

        def call(items: list[Item]) -> tuple[str, dict[str, Any]]:
            chosen = [wanted[each.id] for each in items if each.id in wanted]
            door = self.audit.door if any(each.id.startswith("door") for each in items) else None
            part = msgspec.structs.replace(self.audit, refusals=chosen, door=door)
            return f"{_JOBS}.refusal_job:refusals", {**self._whole, "audit": msgspec.to_builtins(part)}

        return run_items(self.laboratory, "refusals", [Item(name, name) for name in names], call)

    def expect(self, plan: Plan, name: str, wanted: list[dict[str, Any]]) -> dict[str, Told]:
        """Expectations of fixtures, in the oracle worker."""
        by_id = {each["id"]: each for each in wanted}

        def call(items: list[Item]) -> tuple[str, dict[str, Any]]:
            chosen = [by_id[each.id] for each in items]
            names = dict.fromkeys(each["fixture"] for each in chosen)
            return self._call(
                "oracle_job:expect", reference=True, wanted=chosen, fixtures=[plan.fixture(each) for each in names]
            )

        wide = self.audit.oracle.kind == "lifted" or self.audit.agreement.kind == "derived"
        return run_items(
            self.laboratory,
            name,
            [Item(each, each) for each in by_id],
            call,
            jax_config={"jax_enable_x64": True} if wide else None,
            reference=True,
        )

    def _call(self, function: str, *, reference: bool = False, **arguments: Any) -> tuple[str, dict[str, Any]]:
        common = self._reference if reference else self._whole
        return f"{_JOBS}.{function}", {**common, **msgspec.to_builtins(arguments)}


def expectation_id(plan: Plan, cell: CellPlan) -> str:
    """Cells of one fixture, dtype and mode share one expectation."""
    program = plan.program(cell.program)
    return f"{cell.fixture}/{program.dtype}/{digest_of(program.mode)[7:15]}"


def keys_of(plan: Plan, cells: list[CellPlan], engine: str) -> list[str]:
    """Keys of the programs that these cells run at an engine, in plan order."""
    used = {each.program for each in cells}
    return [each.key for each in plan.programs if each.key in used and each.engine == engine]


def shards(cells: list[CellPlan], count: int) -> list[list[CellPlan]]:
    """Cells split so that a program's cells stay together, alternately by program."""
    keys = list(dict.fromkeys(each.program for each in cells))
    number = {key: index % count for index, key in enumerate(keys)}
    parts = [[each for each in cells if number[each.program] == part] for part in range(count)]
    return [part for part in parts if part]


def _chosen(cells: list[CellPlan], items: list[Item]) -> list[CellPlan]:
    wanted = {each.id for each in items}
    return [each for each in cells if each.id in wanted]


def _fixtures(plan: Plan, cells: list[CellPlan]) -> list[dict[str, Any]]:
    names = {each.fixture for each in cells}
    found: list[Fixture] = [each for each in plan.fixtures if each.name in names]
    return msgspec.to_builtins(found)


def _blocks(kernels: list[dict[str, Any]], rank: int) -> list[tuple[int, ...]]:
    """Block shapes that can be those of a result of this rank: declared ones, and pipelined slots without their count."""
    found: list[tuple[int, ...]] = []
    for kernel in kernels:
        if math.prod(kernel["grid"]) > 1:  # else its "blocks" are whole arrays; the last one is a result's
            found += [tuple(each) for each in kernel["blocks"][-1:] if len(each) == rank]
        found += [tuple(each[1:]) for each in kernel["allocations"] if len(each) == rank + 1]
    return list(dict.fromkeys(each for each in found if all(extent > 0 for extent in each)))


__all__ = ["GENERIC", "TPU_INTERPRETER", "Observed", "Stages", "expectation_id", "keys_of", "shards"]
