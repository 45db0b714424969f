"""Job of the subject worker: captures the programs of one side for a described target and hands them over as bytes.

It imports the candidate (or a baseline); the compiler's worker never does.
"""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import msgspec
import numpy as np

from kernel_audit.contract import Audit, FunctionRef
from kernel_audit.errors import AuditError
from kernel_audit.matrix.loading import as_keywords, load_function
from kernel_audit.program import CandidateRaised, Generic, Mode, Program, Target, capture, claimed_backend
from kernel_audit.program.checkpoint_policies import NONE, frozen_policy
from kernel_audit.program.kernel_bodies import lowered_bodies
from kernel_audit.records import ProgramPlan
from kernel_audit.target.kernel_traffic import traffic_by_path
from kernel_audit.target.refusal import reason_of
from kernel_audit.target.respelled import respelled
from kernel_audit.target.sharded import sharded_step
from kernel_audit.target.spellings import Spelling
from kernel_audit.target.whose_refusal import stage_of

IMPORT = "import"


def export_programs(
    steps: Any,
    *,
    audit: dict[str, Any],
    roots: list[str],
    function: dict[str, Any],
    programs: list[dict[str, Any]],
    target: dict[str, Any],
    tuned: bool,
    step: dict[str, Any] | None = None,
    spelling: dict[str, Any] | None = None,
) -> None:
    """One step of the job a program: what it says is in `_exported`, its bytes are the array "bytes".

    `target` has "kind", "platform", "backend" and "devices". `step` refers to the complete step to put the function into;
    `spelling` says how a baseline is respelled first.
    """
    exporter = _Exporter(msgspec.convert(audit, Audit), [Path(each) for each in roots], target, tuned)
    with frozen_policy(exporter.policy(step)), claimed_backend(target["backend"]) as asked:
        steps.begin(IMPORT)
        reference = msgspec.convert(function, FunctionRef)
        loaded = load_function(reference, exporter.roots)
        if reference.factory:
            loaded = exporter.built_by(loaded)
        if spelling is not None:
            loaded = respelled(loaded, msgspec.convert(spelling, Spelling), exporter.audit)
        made = exporter.in_step(loaded, step)
        steps.finish(IMPORT, {"reads_backend": sorted(set(asked))})
        for plan in msgspec.convert(programs, list[ProgramPlan]):
            steps.begin(plan.key)
            told, arrays = exporter.exported(made, plan)
            steps.finish(plan.key, {**told, "reads_backend": sorted(set(asked))}, arrays)


class _Exporter:
    def __init__(self, audit: Audit, roots: list[Path], target: dict[str, Any], tuned: bool) -> None:
        self.audit = audit
        self.roots = roots
        self.target = target
        self.tuned = tuned

    def built_by(self, factory: Callable[..., Any]) -> Callable[..., Any]:
        """The function that a factory makes from the keywords and the declared sizes that it takes."""
        parameters = inspect.signature(factory).parameters
        sizes = {name: size for name, size in self.audit.declared_dims.items() if name in parameters}

        def built(*operands: Any, **keywords: Any) -> Any:
            return factory(**{**sizes, **keywords})(*operands)

        return built

    def policy(self, step: dict[str, Any] | None) -> str:
        """The checkpoint policy of what is exported: the workload's for its step, none for a side alone."""
        return self.audit.workload.remat if step is not None and self.audit.workload is not None else NONE

    def in_step(self, function: Callable[..., Any], step: dict[str, Any] | None) -> Callable[..., Any]:
        """The function itself, or the factory of the complete step with it in place."""
        if step is None:
            return function
        options = as_keywords(self.audit.workload.options) if self.audit.workload is not None else {}
        factory = load_function(msgspec.convert(step, FunctionRef), self.roots)
        return sharded_step(factory, function, self.target["devices"], options)

    def exported(self, function: Callable[..., Any], plan: ProgramPlan) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What is known of one program before any compiler saw it: kernels, refusal, seconds; and its bytes."""
        started = time.perf_counter()
        try:
            program = self._capture(function, plan)
        except CandidateRaised as error:
            reason = reason_of(error.type_name, error.message, stage=stage_of(error), source=error.location)
            return {"reason": msgspec.to_builtins(reason)}, {}
        told = self._described(program)
        try:
            data = program.export(_mode(self.target["platform"]))
        except AuditError as error:
            kind, _, message = str(error.got).partition(": ")
            told["reason"] = msgspec.to_builtins(reason_of(kind, message, stage="lowering"))
            return told, {}
        told["export_s"] = time.perf_counter() - started
        return told, {"bytes": np.frombuffer(data, np.uint8)}

    def _capture(self, function: Callable[..., Any], plan: ProgramPlan) -> Program:
        sharded = hasattr(function, "sharded")
        workload = self.audit.workload if sharded else None
        specs = tuple(
            jax.ShapeDtypeStruct(each.shape(plan.dims), plan.binding.get(each.dtype, each.dtype))
            for each in (workload.operands if workload is not None else self.audit.operands)
        )
        extra = (self.audit.fixed, plan.configuration) if self.tuned else ()
        keywords = as_keywords(plan.mode, *extra)
        if sharded:
            specs = function.sharded(specs)  # type: ignore[attr-defined]
        return capture(function, specs, keywords=keywords, device_kind=self.target["kind"])

    def _described(self, program: Program) -> dict[str, Any]:
        bodies = lowered_bodies(program.jaxpr, self.target["kind"])
        traffic, unread = traffic_by_path(program)
        live = [each.digest for each in program.live_kernels()]
        kernels = []
        for each in program.kernels:
            known = traffic.get(each.path)
            alive = each.digest in live
            if alive:
                live.remove(each.digest)
            counted = math.prod(each.grid) if all(size > 0 for size in each.grid) else None
            kernels.append(
                {
                    "name": each.name,
                    "path": each.path,
                    "digest": each.digest,
                    "body": bodies.get(each.path),
                    "found": False,
                    "live": alive,
                    "authored_interpret": each.authored_interpret,
                    "programs": (known.programs if known else None) or counted,
                    "bytes_moved": known.moved if known else None,
                    "bytes_claimed": known.claimed if known else None,
                }
            )
        return {"program": program.digest, "kernels": kernels, "note": unread}


def _mode(platform: str) -> Mode:
    """A CPU has no compiler for kernels: there a program with one is interpreted, which its sidecar says."""
    return Generic() if platform == "cpu" else Target(platform)
