"""From what the workers told to records: the parent compares every output itself."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.matrix.batch import Told
from kernel_audit.matrix.compare import Comparison, compare, gaps
from kernel_audit.matrix.controls import judge_baseline, judge_controls
from kernel_audit.matrix.observe import baseline_plan
from kernel_audit.matrix.plan import TPU_INTERPRETER
from kernel_audit.matrix.stages import Observed, expectation_id
from kernel_audit.oracle import leaves
from kernel_audit.records import (
    CaptureRecord,
    Cell,
    CellPlan,
    Control,
    KernelInspection,
    Plan,
    RefusalCheck,
    digest_bytes,
)
from kernel_audit.worker import read_arrays

Arrays = dict[str, np.ndarray]


class Assembly:
    """Cells, controls, refusals and programs of one observation."""

    def __init__(self, audit: Audit, plan: Plan, seen: Observed) -> None:
        self.audit = audit
        self.plan = plan
        self.seen = seen
        self.references = baseline_plan(plan)
        self._baseline: dict[str, str] = {}
        self.controls = self._controls()
        self.cells = [self._cell(each) for each in plan.cells]
        self.refusals = [self._refusal(name, promised, names) for name, promised, names in self._promised_refusals()]
        self.refusals += self._door()
        self.kernels = [each for key in seen.programs for each in self._kernels(key)]
        self.programs = [record for key in seen.programs if (record := self._program(key)) is not None]

    def _expected(self, name: str) -> Arrays:
        told = self.seen.expectations.get(name)
        return read_arrays(told.folder, name) if told is not None and told.outcome == "finished" else {}

    def _controls(self) -> list[Control]:
        """Controls for each fixture, dtype and mode; remembers how the baselines did."""
        records: list[Control] = []
        for cell in self.references.cells:
            program, fixture = self.references.program(cell.program), self.references.fixture(cell.fixture)
            arrays = self._expected(cell.id)
            if not fixture.judged:
                continue
            if not arrays:
                self._baseline[cell.id] = "no expectation"
                continue
            about = (cell.fixture, program.dtype, program.mode)
            records += judge_controls(self.audit, *about, arrays)
            found = [self._baseline_control(each.name, cell, about, arrays) for each in self.audit.baselines]
            records += found
            # One baseline that keeps the promise shows that it can be kept.
            kept = any(each.outcome == "accepted" for each in found)
            self._baseline[cell.id] = "agrees" if kept else (found[0].reason or "differs")
        return records

    def _baseline_control(
        self, name: str, cell: CellPlan, about: tuple[str, str, dict[str, Any]], arrays: Arrays
    ) -> Control:
        told = self.seen.baselines.get(name, {}).get(cell.id)
        if told is not None and told.outcome == "finished" and "raised" not in told.value and "fault" not in told.value:
            actual = leaves(read_arrays(told.folder, cell.id), "out")
            return judge_baseline(self.audit, name, *about, actual, arrays)
        fixture, dtype, mode = about
        reason = told.outcome if told is not None else "not captured"
        if told is not None and told.outcome == "finished":
            reason = str(told.value.get("raised") or told.value["fault"]["what"])
        return Control(
            name=f"baseline:{name}",
            fixture=fixture,
            dtype=dtype,
            mode=mode,
            expected="accepted",
            outcome="rejected",
            reason=reason,
        )

    def _cell(self, cell: CellPlan) -> Cell:
        program, fixture = self.plan.program(cell.program), self.plan.fixture(cell.fixture)
        name = expectation_id(self.plan, cell)
        arrays = self._expected(name)
        base = Cell(
            id=cell.id,
            fixture=cell.fixture,
            fixture_digest="",
            family=fixture.family,
            dims=program.dims,
            shape=list(arrays["expected.0"].shape) if arrays else [],
            dtype=program.dtype,
            configuration=program.configuration,
            mode=program.mode,
            engine=program.engine,
            judged=fixture.judged,
            outcome="unjudged",
            program=self._digest(cell.program),
            simulated_device=self._simulated_device(cell.program, program.engine),
            baseline_outcome=self._baseline.get(name),
        )
        lost = _lost(self.seen.programs.get(cell.program)) or _lost(self.seen.cells.get(cell.id))
        if lost is not None:
            return msgspec.structs.replace(base, outcome=lost[0], note=lost[1])
        return self._compared(base, self.seen.cells[cell.id], arrays, "" if arrays else self._why_unjudged(name))

    def _compared(self, base: Cell, told: Told, arrays: Arrays, unjudged: str) -> Cell:
        value = told.value
        outputs = leaves(read_arrays(told.folder, base.id), "out")
        found = compare(self.audit, outputs, arrays) if arrays else Comparison()
        whole, inputs, results = gaps(arrays) if arrays else (None, None, None)
        outcome, note = self._outcome(base, value, found, unjudged)
        return msgspec.structs.replace(
            base,
            outcome=outcome,
            code=found.code if base.judged else "",
            fixture_digest=value["fixture_digest"],
            output_digest=digest_bytes(b"".join(each.tobytes() for each in outputs)),
            kernel_error_max=found.error_max,
            kernel_error_ulps=found.error_ulps,
            differing=found.differing,
            differing_first=found.first,
            nonfinite_mismatches=found.nonfinite_mismatches,
            representation_gap_max=whole,
            gap_input_max=inputs,
            gap_output_max=results,
            repeatable=value["repeatable"],
            inputs_unchanged=value["inputs_unchanged"],
            permutation_holds=value["permutation_holds"],
            races=value["races"],
            poison=value.get("poison"),
            actual_backend=value["actual_backend"],
            note=note,
        )

    def _why_unjudged(self, name: str) -> str:
        """Why there is no expectation of this name."""
        told = self.seen.expectations.get(name)
        reason = self.seen.no_expectation.get(name) or (told.note or told.outcome if told is not None else "")
        return f"the oracle gave no expectation: {reason}"[:300]

    def _outcome(self, base: Cell, value: Any, found: Comparison, unjudged: str) -> tuple[str, str]:
        if unjudged:
            return "unjudged", unjudged
        note = found.detail
        if value.get("same_program") is False:
            return "differs", "another program than the one captured before"
        if not base.judged:
            return "recorded", note
        return ("agrees" if found.agrees else "differs"), note

    def _digest(self, key: str) -> str:
        told = self.seen.programs.get(key)
        record = told.value.get("record") if told is not None else None
        return record["digest"] if record else ""

    def _simulated_device(self, key: str, engine: str) -> str | None:
        told = self.seen.programs.get(key)
        record = told.value.get("record") if told is not None else None
        return record["simulated_device"] if record and engine == TPU_INTERPRETER else None

    def _program(self, key: str) -> CaptureRecord | None:
        value = self.seen.programs[key].value
        if "record" not in value or value.get("tampered"):
            return None
        record = msgspec.convert(value["record"], CaptureRecord)
        raised = value.get("as_cpu_raised") or value.get("retrace_raised") or value.get("not_exported", "")
        if outside := value.get("outside", []):
            raised = raised or f"calculated outside of its kernels: {', '.join(outside)}"
        return msgspec.structs.replace(
            record,
            retrace_same=value.get("retrace"),
            as_cpu_same=value.get("as_cpu"),
            outside=outside,
            note=raised,
        )

    def _kernels(self, key: str) -> list[KernelInspection]:
        value = self.seen.programs[key].value
        return [] if value.get("tampered") else msgspec.convert(value.get("inspected", []), list[KernelInspection])

    def _promised_refusals(self) -> list[tuple[str, str, list[str]]]:
        return [(each.name, each.raises, each.names) for each in self.audit.refusals]

    def _refusal(self, name: str, promised: str, names: list[str]) -> RefusalCheck:
        told = self.seen.refusals[name]
        lost = _lost(told)
        if lost is not None:
            return RefusalCheck(name=name, promised=promised, outcome=lost[0], message=lost[1])
        value = told.value
        message = str(value.get("message", ""))
        if not value["raised"]:
            outcome = "accepted"
        elif promised not in value["kinds"]:
            outcome = "wrong-exception"
        elif not all(each in message for each in names):
            outcome = "value-not-named"
        else:
            outcome = "refused"
        return RefusalCheck(name=name, promised=promised, outcome=outcome, raised=value["raised"], message=message)

    def _door(self) -> list[RefusalCheck]:
        if self.audit.door is None:
            return []
        shut = self._refusal("door", self.audit.door.raises, [])
        outcome, raised, message = _opened(self.seen.refusals["door-opened"])
        promised = "interpret=False in every kernel"
        opened = RefusalCheck(name="door-opened", promised=promised, outcome=outcome, raised=raised, message=message)
        found = [shut, opened]
        if self.audit.door.placed:
            found.append(_of_jax(self._refusal("door-unplaced", self.audit.door.raises, []), self.seen.refusals))
        if self.audit.door.runs_closed:
            found.append(_closed(self.seen.refusals["door-closed"]))
        return found


def _of_jax(check: RefusalCheck, told: dict[str, Told]) -> RefusalCheck:
    """An error of JAX's runtime is a RuntimeError, and no refusal of the candidate's."""
    kinds = told[check.name].value.get("kinds", [])
    theirs = {"JaxRuntimeError", "XlaRuntimeError"} & set(kinds)
    return msgspec.structs.replace(check, outcome="wrong-exception") if check.outcome == "refused" and theirs else check


def _closed(told: Told) -> RefusalCheck:
    """Whether the candidate runs here without the keywords of its door."""
    check = RefusalCheck(name="door-closed", promised="a call that runs here", outcome="runs")
    if (lost := _lost(told)) is not None:
        return msgspec.structs.replace(check, outcome=lost[0], message=lost[1])
    if not told.value["raised"]:
        return check
    return msgspec.structs.replace(
        check, outcome="does-not-run", raised=told.value["raised"], message=str(told.value.get("message", ""))
    )


def _opened(told: Told) -> tuple[str, str, str]:
    """(outcome, what it raised, message) of a target mode traced as if there were a target: nothing seen is no pass."""
    lost = _lost(told)
    if lost is not None and lost[0] != "refused":
        return lost[0], "", lost[1]
    if lost is not None:
        said = told.value["refused"]
        return (
            "raises-on-target",
            said["raised"],
            f"{said['message']} ({said['at']})" if said["at"] else said["message"],
        )
    authored = told.value["authored"]
    if not authored:
        return "no-kernel", "", "the target mode's program holds no Pallas kernel"
    if any(each != "False" for each in authored):
        return "simulates", "", ", ".join(authored)
    if told.value["live"] == 0:
        return "kernel-unused", "", "no result of the target mode's program depends on its kernel"
    return "refused", "", ", ".join(authored)


def _lost(told: Told | None) -> tuple[str, str] | None:
    """(outcome, note) of what never gave a result; None for what did."""
    if told is None:
        return "not-captured", "no program to run"
    if told.outcome != "finished":
        return told.outcome, told.note
    value = told.value
    if value.get("tampered"):
        return "tampered", "changed: " + ", ".join(value["tampered"][:5])
    if refused := value.get("refused"):
        memory = refused["raised"] == "MemoryError" or "RESOURCE_EXHAUSTED" in refused["message"]
        text = f"{refused['raised']}: {refused['message']}"[:300]
        return ("out-of-memory" if memory else "refused"), text
    if fault := value.get("fault"):
        return "not-captured", str(fault["what"])
    if raised := value.get("raised") if "fixture_digest" in value else None:
        memory = "MemoryError" in raised or "RESOURCE_EXHAUSTED" in raised
        return ("out-of-memory" if memory else "raised"), raised
    if "not_exported" in value:
        return "not-captured", value["not_exported"].splitlines()[0]
    return None
