"""Puts a model file through its stages: the audits of its kernels, direct calls, pipelines, and the benchmark's conduct."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from kernel_audit.conduct import Question, Request, evidence_of
from kernel_audit.contract import FunctionRef
from kernel_audit.course.audit_checks import audit_checks
from kernel_audit.course.benchmark_checks import benchmark_checks
from kernel_audit.course.contracts import course_audit, direct_calls, neighbours, pipelines
from kernel_audit.course.fresh import expected_result, fresh_operands
from kernel_audit.course.own_work import closed_files, refused
from kernel_audit.course.promises import Check, Wanted
from kernel_audit.course.told import Told, raised_text, seen_in
from kernel_audit.kernels.audits import BUILT_IN
from kernel_audit.matrix.check import check_matrix
from kernel_audit.matrix.laboratory import PRELOAD, Laboratory, Limits
from kernel_audit.worker import GIB, Job, JobResult, Pool, read_arrays

JOBS = ("kernel_audit.course.model_job", "kernel_audit.course.benchmark_job")


@dataclass(frozen=True)
class Checked:
    """What came of one function. `tried`: it is there and written; else the last check says why not, and other functions of
    the file would say the same."""

    checks: list[Check]
    tried: bool = True


class Checker:
    """Checks model files; what knows nothing of a model is kept in `home` and shared between them.

    `solution` says that the file may use the package's own kernels.
    """

    def __init__(self, home: Path, *, workers: int = 2, deadline_s: float = 60.0) -> None:
        self.home = home.resolve()
        self.workers = workers
        self.limits = Limits(deadline_s, 4 * GIB)
        self.pool = Pool(size=workers, preload=(*PRELOAD, *JOBS))

    def close(self) -> None:
        """Ends the workers."""
        self.pool.close()

    def check(self, path: Path, wanted: Wanted, *, solution: bool = False, seed: int | None = None) -> Checked:
        """A check for each promise of one function of the file. `seed` draws the late values; random unless given.

        Raises AuditError for a file that loads modules that it may not load.
        """
        seed = secrets.randbits(48) if seed is None else seed
        # When it is interrupted a worker is still writing there: what is left goes with `home`, after `close`.
        with tempfile.TemporaryDirectory(dir=self.home, ignore_cleanup_errors=True) as work:
            trial = _Trial(self, path.resolve(), wanted, Path(work), solution, seed)
            return trial.benchmark() if wanted.audit is None else trial.kernel(wanted.audit)


class _Trial:
    """One function of one file."""

    def __init__(self, checker: Checker, path: Path, wanted: Wanted, work: Path, solution: bool, seed: int) -> None:
        self.checker, self.path, self.wanted, self.work = checker, path, wanted, work
        self.solution, self.seed = solution, seed

    def kernel(self, name: str) -> Checked:
        calls = direct_calls(self.wanted.name, self.seed)
        read = pipelines() if self.wanted.name == "pipelined_axpy" else []
        told = self._run(
            "model_job:try_kernel",
            neighbours=neighbours(self.wanted.name),
            calls=calls,
            pipelines=read,
        )
        first = self._first(told)
        if not first.tried:
            return first
        found = [*first.checks, *self._audited(name)]
        found += [self._called(each, told) for each in calls]
        found += [
            self._check(f"{self.wanted.name} accepts {each['name']}", told.seen(f"neighbour:{each['name']}"))
            for each in neighbours(self.wanted.name)
        ]
        return Checked([*found, *self._pipelines(read, told)])

    def benchmark(self) -> Checked:
        here = self._run("benchmark_job:refuse_here")
        first = self._first(here)
        if not first.tried:
            return first
        stubbed = self._run("benchmark_job:try_on_stub").steps
        return Checked([*first.checks, *benchmark_checks(self.wanted.stage, {**stubbed, **here.steps})])

    def _first(self, told: _Answer) -> Checked:
        """Whether there is anything to check: the file can be imported, the function is there and written."""
        if unmet := self._unmet(told):
            return Checked(unmet, tried=False)
        found = [self._check(f"{self.wanted.name} can be called as documented", told.steps["signature"]["signature"])]
        if not_written := _not_written(told.steps):
            return Checked([*found, self._check(f"{self.wanted.name} is written", not_written)], tried=False)
        return Checked(found)

    def _check(self, promise: str, seen: str = "") -> Check:
        return Check(self.wanted.stage, promise, seen)

    def _run(self, function: str, **arguments: Any) -> _Answer:
        folder = Path(tempfile.mkdtemp(prefix="job-", dir=self.work))
        parameters = {key: None if value is ... else value for key, value in self.wanted.parameters.items()}
        job = Job(
            function=f"kernel_audit.course.{function}",
            arguments={
                "folder": str(self.path.parent),
                "file": self.path.name,
                "name": self.wanted.name,
                "parameters": msgspec.to_builtins(parameters),
                **arguments,
            },
            folder=folder,
            deadline_s=self.checker.limits.deadline_s,
            memory_bytes=self.checker.limits.memory_bytes,
            import_path=(str(self.path.parent),),
        )
        answer = _Answer(self.checker.pool.run(job), folder)
        for told in answer.steps.values():
            if told and "sources" in told:
                self._require_own(told["sources"], told["read"])
        return answer

    def _require_own(self, sources: Mapping[str, str], read: Iterable[str] = ()) -> None:
        """Raises AuditError for a file that uses what it may not, whenever it loads it."""
        if not self.solution and (closed := closed_files(sources, read)):
            raise refused(self.path, f"it loads {closed[0]}")

    def _unmet(self, told: _Answer) -> list[Check]:
        """Why nothing can be checked: the file cannot be imported, or has no such function."""
        steps = told.steps
        promise = "the file can be imported"
        if "import" not in steps:
            return [self._check(promise, told.ending)]
        if "raised" in steps["import"]:
            return [self._check(promise, raised_text(steps["import"]))]
        if not steps["signature"]["callable"]:
            return [self._check(f"the file has a function {self.wanted.name}", "there is none")]
        return []

    def _audited(self, name: str) -> list[Check]:
        reference = FunctionRef(file=self.path.name, name=self.wanted.name)
        audit = msgspec.structs.replace(course_audit(name), candidate=reference)
        checker = self.checker
        laboratory = Laboratory(
            checker.pool,
            self.work / "audit",
            [self.path.parent],
            checker.limits,
            checker.workers,
            references=checker.home / "references",
        )
        try:
            matrix = check_matrix(audit, laboratory, self.seed, lambda *_: None, quick=True)
        finally:
            laboratory.close()
        self._require_own(matrix.records.seen.candidate_files())
        request = Request(
            audit=audit,
            cells=None,
            quick=True,
            late_seed=self.seed,
            late_seed_commitment="",
            sources={},
            tool_version="",
        )
        evidence, _ = evidence_of(Question(audit=name), request, matrix, {})
        refused_at = {
            key: (each.value.get("refused") or {}).get("at", "") for key, each in matrix.records.seen.programs.items()
        }
        names = {each.name: each.names for each in BUILT_IN[name].refusals}
        return audit_checks(self.wanted, audit, evidence, refused_at, names)

    def _called(self, call: Mapping[str, Any], told: _Answer) -> Check:
        """A direct call's result against NumPy. Operands are drawn again here: no worker says what was right."""
        step = f"call:{call['name']}"

        def judged(_: Told) -> str:
            actual = read_arrays(told.folder, step)["out"]
            operands = fresh_operands(self.wanted.name, call["shape"], call["dtype"], call["seed"])
            return _difference(actual, expected_result(self.wanted.name, operands))

        return self._check(f"{self.wanted.name} called directly, {call['name']}", told.seen(step, judged))

    def _pipelines(self, read: list[dict[str, Any]], told: _Answer) -> Iterator[Check]:
        for promise, kept in _PIPELINES.items() if read else ():
            seen = [
                told.seen(
                    f"pipeline:{number}",
                    lambda each, call=call, kept=kept: "" if kept(each, call) else f"with {call['keywords']}: {each}",
                )
                for number, call in enumerate(read)
            ]
            yield self._check(f"{self.wanted.name}: {promise}", next(filter(None, seen), ""))


_PIPELINES: dict[str, Callable[[Told, Mapping[str, Any]], bool]] = {
    "its only kernel is made by pltpu.emit_pipeline": lambda each, call: each.get("emitted") is True,
    "copies are synchronous exactly where no_pipelining is asked for": lambda each, call: (
        each.get("synchronous") is call["flag"]
    ),
    'mode "simulate" runs in the TPU interpreter, with race detection': lambda each, call: (
        each.get("interpret") == "InterpretParams" and each.get("races") is True
    ),
}


class _Answer:
    """What a job told: its finished steps, and how it ended."""

    def __init__(self, result: JobResult, folder: Path) -> None:
        if stated := result.audit_error():
            raise stated
        self.steps: Mapping[str, Told] = result.steps
        self.folder = folder
        error = result.error or {}
        self.ending = f"the worker {result.outcome}: {error.get('message', '')}".strip(": ")

    def seen(self, step: str, judge: Callable[[Told], str] = lambda told: "") -> str:
        """What is wrong with a step that is to raise nothing: that the worker did not come to it, what it raised, or what
        `judge` says."""
        return seen_in(self.steps.get(step), judge, ended=self.ending)


def _not_written(steps: Mapping[str, Told]) -> str:
    """The text of a NotImplementedError, wherever it came."""
    for told in steps.values():
        if "NotImplementedError" in (told or {}).get("kinds", []):
            return raised_text(told)
    return ""


def _difference(actual: np.ndarray, expected: np.ndarray) -> str:
    if actual.shape != expected.shape:
        return f"expected shape {expected.shape}, got {actual.shape}"
    if actual.dtype != expected.dtype:
        return f"expected {expected.dtype.name}, got {actual.dtype.name}"
    wrong = np.argwhere(~((actual == expected) | (np.isnan(actual) & np.isnan(expected))))
    if not len(wrong):
        return ""
    place = tuple(int(each) for each in wrong[0])
    return f"{len(wrong)} positions differ; at {list(place)} expected {float(expected[place])!r}, got {float(actual[place])!r}"
