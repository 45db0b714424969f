"""Whether programs are right on the device: complete outputs against the oracle, and what their timed results are held to."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.errors import AuditError, EnvironmentFault
from kernel_audit.matrix.compare import Comparison, compare
from kernel_audit.matrix.laboratory import Limits
from kernel_audit.measure.budgets import Budgets, budgets_of, half_ulp
from kernel_audit.measure.comparison import check_seed, is_large, put_to
from kernel_audit.measure.prepared import Prepared, Ready
from kernel_audit.measure.sessions import MEMORY_BYTES, how_it_ended
from kernel_audit.records import ABLATION, PROGRAM, Failure, Fixture, ProgramPlan, TargetCheck
from kernel_audit.worker import Job, JobResult, read_arrays

CHECK = "kernel_audit.measure.device_job:check_programs"
FAMILIES = ("normal", "cancellation", "non-finite")
REFERENCE = "the reference in float64"
_DEATHS = (
    "Crashed",
    "TimedOut",
    "WorkerLost",
    "OutOfMemory",
    "MemoryError",
)  # types of `worker.verdict`: how a worker ends


@dataclass
class Checked:
    """What is known of a comparison's programs on the device, by program id. `budgets`: see `audit_task.task`."""

    told: dict[str, dict[str, Any]] = field(default_factory=dict)
    checks: list[TargetCheck] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    inputs: dict[str, str] = field(default_factory=dict)
    budgets: list[float] | None = None

    def sound(self, program: Prepared) -> bool:
        """Whether it ran and nothing of it was wrong."""
        failed = {(each.role, each.name) for each in self.failures}
        return program.id in self.told and (program.role, program.name) not in failed


class Checking:
    """Checks the programs of comparisons. `device` runs jobs on the target, `host` those of the oracle."""

    def __init__(
        self, device: Any, host: Any, work: Path, roots: list[Path], limits: Limits, audit: Audit, target: str
    ) -> None:
        self.device, self.host, self.work, self.roots = device, host, work, roots
        self.limits, self.audit, self.target = limits, audit, target
        self._numbers = itertools.count()
        self._expected: dict[str, Path] = {}

    def check(self, ready: Ready) -> Checked:
        """All programs of a comparison but the twins. A program that fails costs itself, and the others go on."""
        found = Checked()
        if ready.unreferenced is not None:
            found.failures.append(ready.unreferenced)
            return found
        self.check_programs(ready, [each for each in ready.programs if each.role != ABLATION], found)
        return found

    def check_programs(self, ready: Ready, programs: list[Prepared], found: Checked) -> None:
        """Some programs of a comparison, with what is known of its baselines already."""
        found.failures += [_not_made(each) for each in programs if each.place is None]
        fixtures = self._fixtures(ready)
        folders = self._run(ready, [each for each in programs if each.place is not None], fixtures, found)
        budgets = self._budgets(ready, found)
        found.budgets = None if budgets is None else budgets.allowed
        self._against_reference(ready, folders, found, budgets)
        if fixtures and folders:
            self._against_oracle(ready, fixtures, folders, found)

    def _fixtures(self, ready: Ready) -> list[str]:
        """Value families for the oracle: none for a step, of which it knows nothing, or for large operands."""
        if ready.comparison.part != PROGRAM or is_large(self.audit, ready.comparison):
            return []
        promised = [each for each in FAMILIES if each in self.audit.values.families or each == "normal"]
        return [each for each in promised if each != "non-finite" or self.audit.values.nonfinite == "propagate"]

    def _run(self, ready: Ready, programs: list[Prepared], fixtures: list[str], found: Checked) -> dict[str, Path]:
        """Runs them; gives the folder of each one's arrays. One that fails as it runs, or ends its process, costs itself: an
        error of the device may stay with its process, so that the others go on in a new one."""
        folders: dict[str, Path] = {}
        while programs:
            folder = self.work / f"check-{next(self._numbers)}"
            result = self.device.run(self._job(ready, programs, fixtures, folder))
            if (error := result.audit_error()) is not None:
                raise error
            found.inputs |= result.steps.get("inputs") or {}
            told = [each for each in programs if each.id in result.steps]
            broken = next((each for each in told if _failed_at(result.steps[each.id]) == "run"), None)
            if broken is None and result.outcome != "finished":
                broken = next((each for each in programs if each.id == result.step_in_progress), None)
            if broken is None and (result.outcome != "finished" or len(told) < len(programs)):
                raise _no_check(ready, result)
            until = len(programs) if broken is None else programs.index(broken) + 1
            for each in programs[:until]:
                self._take(each, result, found)
                if each.id in found.told:
                    folders[each.id] = folder
            programs = programs[until:]
        return folders

    def _take(self, program: Prepared, result: JobResult, found: Checked) -> None:
        """What a process told of one program."""
        told = result.steps.get(program.id)
        if told is None:
            found.failures.append(_failure("run", program, "the program ended its process", how_it_ended(result)))
        elif "failed" in told:
            text = "the program failed on the target"
            found.failures.append(_failure(told["failed"]["stage"], program, text, told["failed"]["got"]))
        else:
            found.told[program.id] = told

    def _job(self, ready: Ready, programs: list[Prepared], fixtures: list[str], folder: Path) -> Job:
        comparison = ready.comparison
        audit, dims = put_to(self.audit, comparison)
        arguments = {
            "target": self.target,
            "audit": msgspec.to_builtins(audit),
            "dims": dims,
            "binding": comparison.binding,
            "programs": [
                {"id": each.id, "role": each.role, "name": each.name, "place": str(Path(str(each.place)).resolve())}
                for each in programs
            ],
            "reference": ready.reference,
            "fixtures": fixtures,
            "large": is_large(self.audit, comparison),
        }
        return Job(CHECK, arguments, folder, deadline_s=self.limits.deadline_s, memory_bytes=MEMORY_BYTES)

    def _budgets(self, ready: Ready, found: Checked) -> Budgets | None:
        """See `budgets_of`; None for exact agreement."""
        if not ready.reference["wide"]:
            return None
        factor = self.audit.agreement.factor if self.audit.agreement.kind == "derived" else 2.0
        told = {each.id: found.told[each.id] for each in ready.of("baseline") if each.id in found.told}
        return budgets_of(told, factor)

    def _against_reference(
        self, ready: Ready, folders: dict[str, Path], found: Checked, budgets: Budgets | None
    ) -> None:
        """The complete results of ordinary values, as far as one number a result says it. Where no baseline is right there is
        nothing to hold other programs to."""
        for each in (one for one in ready.programs if one.id in folders):
            told = found.told[each.id]
            if budgets is not None and not budgets.allowed and each.role != "baseline":
                continue
            for number, row in enumerate(told["errors"]):
                allowed = budgets.allowed if budgets is not None else [0.0] * len(row)
                wrong = {
                    place
                    for place, error in enumerate(row)
                    if place >= len(allowed)
                    or error is None
                    or error > allowed[place] + _slack(found, told, place, number)
                }
                note = ""
                if budgets is not None and each.id in budgets.wrong:
                    wrong, note = wrong | set(budgets.wrong[each.id]), budgets.why[each.id]
                self._note(found, each, f"normal-{number}", REFERENCE, _elements(told), sorted(wrong), _most(row), note)

    def _against_oracle(self, ready: Ready, fixtures: list[str], folders: dict[str, Path], found: Checked) -> None:
        results = next((told["shapes"] for told in found.told.values()), [])
        arrays = {
            name: _as_good_as_baselines(each, found.budgets)
            for name, each in self._expectations(ready, fixtures, [dtype for _, dtype in results]).items()
        }
        for each in (one for one in ready.programs if one.id in folders):
            outputs = read_arrays(folders[each.id], each.id)
            for name in fixtures:
                leaves = [outputs[f"{name}.{place}"] for place in range(len(results)) if f"{name}.{place}" in outputs]
                seen = compare(self.audit, leaves, arrays[name])
                wrong = list(range(max(seen.differing, 0 if seen.agrees else 1)))
                how = f"the {self.audit.oracle.kind} oracle on the same operands, {self.audit.agreement.kind} agreement"
                elements = sum(leaf.size for leaf in leaves)
                self._note(found, each, name, how, elements, wrong, seen.error_max, _first(seen))

    def _note(
        self,
        found: Checked,
        program: Prepared,
        fixture: str,
        how: str,
        elements: int,
        wrong: list[int],
        error_max: float | None,
        note: str = "",
    ) -> None:
        found.checks.append(
            TargetCheck(
                role=program.role,
                name=program.name,
                fixture=fixture,
                inputs=found.inputs.get(fixture, ""),
                how=how,
                elements=elements,
                differing=len(wrong),
                error_max=error_max,
                note=note[:200],
            )
        )
        if wrong and not any((each.role, each.name) == (program.role, program.name) for each in found.failures):
            got = note or f"off by {error_max}"
            found.failures.append(_failure("compare", program, f"the results on {fixture} differ from {how}", got))

    def _expectations(self, ready: Ready, fixtures: list[str], dtypes: list[str]) -> dict[str, dict[str, np.ndarray]]:
        """What the oracle says, in a worker of its own that sees no candidate; asked once."""
        comparison, audit = ready.comparison, self.audit
        if (known := self._expected.get(comparison.text)) is not None:
            return {name: read_arrays(known, name) for name in fixtures}
        lift: dict[str, Any] = {}
        if audit.oracle.kind == "lifted" or audit.agreement.kind == "derived":
            plan = ProgramPlan(
                key="lift", dims=comparison.dims, binding=comparison.binding, mode=comparison.mode, engine="lift"
            )
            result, folder = self._host("lift_job:lift", {"programs": msgspec.to_builtins([plan])})
            lift = {
                "lifted": str(folder.resolve()),
                "program": "lift",
                "lifted_operands": result.steps["lift"].get("operands", []),
            }
        names = {
            name: Fixture(name=name, dims=comparison.dims, family=name, seed=check_seed(name)) for name in fixtures
        }
        item = {"binding": comparison.binding, "mode": comparison.mode, "results": dtypes, **lift}
        wanted = [{"id": name, "fixture": name, **item} for name in fixtures]
        _, folder = self._host(
            "oracle_job:expect", {"wanted": wanted, "fixtures": msgspec.to_builtins(list(names.values()))}
        )
        self._expected[comparison.text] = folder
        return {name: read_arrays(folder, name) for name in fixtures}

    def _host(self, function: str, arguments: dict[str, Any]) -> tuple[JobResult, Path]:
        folder = self.work / f"oracle-{next(self._numbers)}"
        whole = {"audit": msgspec.to_builtins(self.audit), "roots": [str(each) for each in self.roots], **arguments}
        result = self.host.run(
            Job(
                f"kernel_audit.matrix.{function}",
                whole,
                folder,
                deadline_s=self.limits.deadline_s,
                memory_bytes=self.limits.memory_bytes,
                jax_config={"jax_enable_x64": True},
                environment={"JAX_PLATFORMS": "cpu"},
                import_path=tuple(str(each) for each in self.roots),
            )
        )
        if (error := result.audit_error()) is not None:
            raise error
        if result.outcome != "finished":
            raise EnvironmentFault(
                "the oracle's worker ended", stage="measure", where=function, got=how_it_ended(result)
            )
        return result, folder


def _as_good_as_baselines(arrays: dict[str, np.ndarray], budgets: list[float] | None) -> dict[str, np.ndarray]:
    """A derived budget comes from noise after each operation. A target's own functions may be coarser than that, for everyone:
    a result that is as good as the baselines' there is not wrong."""
    widened = dict(arrays)
    for place, budget in enumerate(budgets or ()):
        if (known := arrays.get(f"budget.{place}")) is not None:
            widened[f"budget.{place}"] = np.maximum(known, budget)
    return widened


def _first(seen: Comparison) -> str:
    if not seen.first:
        return seen.detail
    return f"{seen.first[0].position}: {seen.first[0].actual} instead of {seen.first[0].expected}"


def _failed_at(told: dict[str, Any]) -> str:
    return str(told["failed"]["stage"]) if "failed" in told else ""


def _not_made(program: Prepared) -> Failure:
    """A program without bytes. A worker that died, or ran out of time or memory, is the host's failure, not the candidate's."""
    what = "the program for the target could not be made"
    died = not program.told.get("reason") and program.refused.partition(":")[0] in _DEATHS
    if died and program.role == "candidate":
        what = "the worker that makes the program for the target ended"
        return msgspec.structs.replace(_failure("export", program, what, program.refused), role="host")
    return _failure("export", program, what, program.refused)


def _failure(stage: str, program: Prepared, what: str, got: str) -> Failure:
    expected = "the program to complete with the results of the contract"
    return Failure(stage=stage, role=program.role, name=program.name, what=what, expected=expected, got=got[:600])


def _no_check(ready: Ready, result: JobResult) -> AuditError:
    return EnvironmentFault(
        "the check on the target did not start",
        stage="measure",
        where=ready.comparison.text,
        expected="a process that reads programs and draws operands",
        got=how_it_ended(result),
    )


def _slack(found: Checked, told: dict[str, Any], place: int, number: int) -> float:
    return half_ulp(told, place, number) if found.budgets is not None else 0.0


def _elements(told: dict[str, Any]) -> int:
    return sum(int(np.prod(shape, dtype=np.int64)) for shape, _ in told["shapes"])


def _most(row: list[float | None]) -> float | None:
    known = [each for each in row if each is not None]
    return max(known) if len(known) == len(row) and known else None
