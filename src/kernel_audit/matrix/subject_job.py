"""Jobs of the subject worker: the only ones that import a candidate (or a baseline)."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from kernel_audit.contract import Audit, FunctionRef
from kernel_audit.errors import AuditError
from kernel_audit.inspect import calculations, inspect_program
from kernel_audit.matrix.cell_run import run_cell
from kernel_audit.matrix.loading import IMPORT, as_keywords, load_function, sources, tampered, watched_state
from kernel_audit.matrix.plan import GENERIC, for_gpus_alone
from kernel_audit.program import (
    CandidateRaised,
    Generic,
    Program,
    TpuInterpreter,
    capture,
    claimed_backend,
    described,
    refuse_by_name,
    run_simulated,
)
from kernel_audit.records import Fixture, ProgramPlan, digest_bytes

# What a kernel is traced for: (backend, kind of device). A program of both kinds of target is traced for a TPU.
TPU, GPU = ("tpu", "TPU v5 lite"), ("gpu", "NVIDIA H200")


def traced_for(audit: Audit) -> tuple[str, str]:
    """(backend, kind of device) that a candidate is told."""
    return GPU if for_gpus_alone(audit) else TPU


class Subject:
    """An imported function with its audit: captures programs and says whether the libraries are still themselves."""

    def __init__(self, steps: Any, audit: dict[str, Any], function: dict[str, Any], roots: list[str]) -> None:
        self.audit = msgspec.convert(audit, Audit)
        self.backend, self.device_kind = traced_for(self.audit)
        self.roots = [Path(each) for each in roots]
        self._before = set(sys.modules)
        state = watched_state()
        steps.begin(IMPORT)
        self.reference = msgspec.convert(function, FunctionRef)
        self.function = load_function(self.reference, self.roots)
        self._state = state
        steps.finish(IMPORT, {"sources": sources(self._before), "tampered": self.tampered()})
        self._known = set(sys.modules)

    def loaded_late(self) -> dict[str, str]:
        """Files that were loaded since the import, or since this was asked before: a function may import when it is called."""
        before, self._known = self._known, set(sys.modules)
        return sources(before) if self._known - before else {}

    def tampered(self) -> list[str]:
        return tampered(self._state)

    def made(self, keywords: dict[str, Any], dims: dict[str, int]) -> tuple[Callable[..., Any], dict[str, Any]]:
        """(function, keywords that it still needs). A factory is called with the keywords and the sizes it takes."""
        if not self.reference.factory:
            return self.function, keywords
        parameters = inspect.signature(self.function).parameters
        sizes = {name: size for name, size in dims.items() if name in parameters and name not in keywords}
        return self.function(**keywords, **sizes), {}

    def captured(
        self, operands: tuple[Any, ...], keywords: dict[str, Any], dims: dict[str, int], device_kind: str | None = None
    ) -> Program:
        """The candidate's program for these operands. Raises CandidateRaised for a factory that raises, too."""
        device_kind = device_kind or self.device_kind
        with described(device_kind):
            try:
                function, left = self.made(keywords, dims)
            except Exception as error:
                raise CandidateRaised(error, where=self.reference.text) from error
        return capture(function, operands, keywords=left, device_kind=device_kind)

    def operands(self, plan: ProgramPlan) -> tuple[jax.ShapeDtypeStruct, ...]:
        return tuple(
            jax.ShapeDtypeStruct(each.shape(plan.dims), plan.binding.get(each.dtype, each.dtype))
            for each in self.audit.operands
        )

    def capture(self, plan: ProgramPlan, *, tuned: bool, device_kind: str | None = None) -> Program:
        """The program of a plan; a baseline has no tuning."""
        extra = (self.audit.fixed, plan.configuration) if tuned else ()
        return self.captured(self.operands(plan), as_keywords(plan.mode, *extra), plan.dims, device_kind)

    def pullback(self, plan: ProgramPlan, device_kind: str | None = None) -> Program:
        """The program that gives the gradients of the operands of a floating dtype, for ones as cotangents.

        Raises CandidateRaised where the candidate cannot be differentiated at these operands.
        """
        keywords = as_keywords(plan.mode, self.audit.fixed, plan.configuration)
        operands = self.operands(plan)
        differentiable = [index for index, each in enumerate(operands) if jnp.issubdtype(each.dtype, jnp.floating)]

        def gradients(*given: Any) -> Any:
            function, left = self.made(keywords, plan.dims)

            def of_floats(*floats: Any) -> list[Any]:
                whole = list(given)
                for index, each in zip(differentiable, floats, strict=True):
                    whole[index] = each
                results = jax.tree.leaves(function(*whole, **left))
                return [each for each in results if jnp.issubdtype(each.dtype, jnp.floating)]

            results, pull = jax.vjp(of_floats, *[given[index] for index in differentiable])
            return pull([jnp.ones(each.shape, each.dtype) for each in results])

        return capture(gradients, operands, device_kind=device_kind or self.device_kind)


def _claimed(audit: dict[str, Any]) -> contextlib.AbstractContextManager[list[str]]:
    """The backend that a candidate is told while it is imported and traced."""
    return claimed_backend(traced_for(msgspec.convert(audit, Audit))[0])


def scout(steps: Any, *, audit: dict[str, Any], roots: list[str], programs: list[dict[str, Any]]) -> None:
    """Captures one program a configuration and tells the block shapes of its kernels: the plan needs them."""
    with _claimed(audit):
        subject = Subject(steps, audit, audit["candidate"], roots)
        for plan in msgspec.convert(programs, list[ProgramPlan]):
            with guarded_step(steps, plan.key, subject) as told:
                told["kernels"] = msgspec.to_builtins(subject.capture(plan, tuned=True).kernels)


def capture_programs(
    steps: Any, *, audit: dict[str, Any], roots: list[str], programs: list[dict[str, Any]], side: str
) -> None:
    """Captures programs of one side ("candidate", or a baseline's name) and exports those that run from bytes."""
    function = audit["candidate"]
    if side != "candidate":
        function = next(each["function"] for each in audit["baselines"] if each["name"] == side)
    with _claimed(audit):
        subject = Subject(steps, audit, function, roots)
        for plan in msgspec.convert(programs, list[ProgramPlan]):
            arrays: dict[str, np.ndarray] = {}
            with guarded_step(steps, plan.key, subject, arrays) as told:
                _capture_one(subject, plan, side, told, arrays)


def _capture_one(
    subject: Subject, plan: ProgramPlan, side: str, told: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    tuned = side == "candidate"
    program = subject.capture(plan, tuned=tuned)
    exports: dict[str, str] = {}
    if tuned:
        told.update(_second_looks(subject, plan, program))
        told.update(_read(subject, plan, program))
        told["outside"] = calculations(program) if subject.audit.alone else []
    if plan.engine == GENERIC:
        try:
            refuse_by_name(program, Generic())
            data = program.export(Generic())
        except AuditError as error:
            told["not_exported"] = error.text()
        else:
            exports["generic"] = digest_bytes(data)
            arrays["bytes"] = np.frombuffer(data, np.uint8)
    told["record"] = msgspec.to_builtins(
        program.record(key=plan.key, side=side, configuration=plan.configuration, mode=plan.mode, exports=exports)
    )


def _read(subject: Subject, plan: ProgramPlan, program: Program) -> dict[str, Any]:
    """The program's kernels, read; what cannot be read costs its record and nothing else."""
    try:
        found = inspect_program(
            program, key=plan.key, targets=subject.audit.targets, arithmetic=subject.audit.precision.arithmetic
        )
    except Exception as error:
        return {"not_inspected": f"{type(error).__name__}: {error}"[:300]}
    return {"inspected": msgspec.to_builtins(found)}


def _second_looks(subject: Subject, plan: ProgramPlan, program: Program) -> dict[str, Any]:
    """Whether the program is the same where the backend is said to be a CPU; if not, whether a plain second trace is."""
    looks = _look_again(subject, plan, program, "as_cpu", "cpu")
    if looks["as_cpu"]:
        return {**looks, "retrace": True}
    return {**looks, **_look_again(subject, plan, program, "retrace", subject.backend)}


def _look_again(subject: Subject, plan: ProgramPlan, program: Program, name: str, backend: str) -> dict[str, Any]:
    with claimed_backend(backend):
        try:
            return {name: subject.capture(plan, tuned=True).digest == program.digest}
        except CandidateRaised as error:
            return {name: False, f"{name}_raised": f"{error.type_name}: {error.message}"}


def simulate(
    steps: Any,
    *,
    audit: dict[str, Any],
    roots: list[str],
    programs: list[dict[str, Any]],
    cells: list[dict[str, Any]],
    fixtures: list[dict[str, Any]],
    digests: dict[str, str],
) -> None:
    """Runs cells in the TPU interpreter, which cannot be exported: the candidate is imported again, and each program's
    digest must be the one captured before its inputs were drawn."""
    plans = {each.key: each for each in msgspec.convert(programs, list[ProgramPlan])}
    by_name = {each.name: each for each in msgspec.convert(fixtures, list[Fixture])}
    mode = TpuInterpreter()
    with claimed_backend("tpu"):
        subject = Subject(steps, audit, audit["candidate"], roots)
        made: dict[str, Callable[[list[np.ndarray]], tuple[list[np.ndarray], bool]]] = {}
        for cell in cells:
            arrays: dict[str, np.ndarray] = {}
            plan = plans[cell["program"]]
            with guarded_step(steps, cell["id"], subject, arrays) as told:
                told.update(actual_backend=jax.devices()[0].platform, poison=mode.uninitialized_memory)
                first = plan.key not in made
                if first:
                    program = subject.capture(plan, tuned=True)
                    told["same_program"] = program.digest == digests[plan.key]
                    made[plan.key] = _simulated_call(program, mode)
                observed, outputs = run_cell(
                    subject.audit, by_name[cell["fixture"]], plan.binding, made[plan.key], again=first, permute=first
                )
                told.update(observed)
                arrays.update(outputs)


def _simulated_call(
    program: Program, mode: TpuInterpreter
) -> Callable[[list[np.ndarray]], tuple[list[np.ndarray], bool]]:
    executable = program.executable(mode)

    def call(arrays: list[np.ndarray]) -> tuple[list[np.ndarray], bool]:
        found = run_simulated(executable, arrays)
        return [np.asarray(each) for each in found.outputs], found.races

    return call


@contextlib.contextmanager
def guarded_step(
    steps: Any, name: str, subject: Subject, arrays: dict[str, np.ndarray] | None = None
) -> Iterator[dict[str, Any]]:
    """A step whose value says what the candidate raised while traced and what it tampered with."""
    told: dict[str, Any] = {}
    steps.begin(name)
    try:
        yield told
    except CandidateRaised as error:
        told["refused"] = {
            "raised": error.type_name,
            "kinds": list(error.mro),
            "message": error.message[:500],
            "at": error.location,
        }
    except AuditError as error:
        told["fault"] = error.parts()
    except Exception:
        if not subject.tampered():  # else what failed is no longer ours
            raise
    told["tampered"] = subject.tampered()
    told["sources"] = subject.loaded_late()
    steps.finish(name, told, arrays or None)
