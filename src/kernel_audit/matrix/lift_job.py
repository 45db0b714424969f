"""Job of a baseline's worker: the baseline in float64, and with noise, as bytes for the oracle worker (64-bit mode)."""

from __future__ import annotations

from typing import Any

import jax
import msgspec
import numpy as np
from jax import export

from kernel_audit.contract.dtypes import is_float
from kernel_audit.errors import AuditError
from kernel_audit.matrix.subject_job import Subject
from kernel_audit.oracle.lifted import lifted
from kernel_audit.oracle.noise import noisy
from kernel_audit.records import ProgramPlan


def lift(steps: Any, *, audit: dict[str, Any], roots: list[str], programs: list[dict[str, Any]]) -> None:
    """One step a program of the first baseline: arrays "lifted" and "noisy" hold exported bytes."""
    subject = Subject(steps, audit, audit["baselines"][0]["function"], roots)
    for plan in msgspec.convert(programs, list[ProgramPlan]):
        steps.begin(plan.key)
        arrays: dict[str, np.ndarray] = {}
        told: dict[str, Any] = {}
        try:
            with jax.enable_x64(False):
                program = subject.capture(plan, tuned=False)
            wide = [_wide(each) for each in program.specs]
            stored = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in program.specs]
            arrays["lifted"] = _bytes(lifted(program.jaxpr), wide)
            seed = jax.ShapeDtypeStruct((), np.uint32)
            arrays["noisy"] = _bytes(noisy(program.jaxpr), [seed, *stored])
            told["operands"] = [np.dtype(each.dtype).name for each in wide]
        except AuditError as error:
            told["fault"] = error.parts()
        steps.finish(plan.key, told, arrays or None)


def _wide(aval: Any) -> jax.ShapeDtypeStruct:
    dtype = np.dtype("float64") if is_float(np.dtype(aval.dtype).name) else aval.dtype
    return jax.ShapeDtypeStruct(aval.shape, dtype)


def _bytes(function: Any, avals: list[jax.ShapeDtypeStruct]) -> np.ndarray:
    return np.frombuffer(export.export(jax.jit(function))(*avals).serialize(), np.uint8)
