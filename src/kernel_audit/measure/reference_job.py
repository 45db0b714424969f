"""Job of a baseline's worker: a comparison's reference as bytes for a CPU, which timing processes run beside the device.

It is the first baseline, in float64 where the agreement is derived, else in its own arithmetic: rounded as the contract says,
so that an exact agreement can be held to it. A process that times a candidate imports no file of the audit, so the reference
cannot be a function; the oracle itself judges complete outputs in a worker of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import msgspec
import numpy as np
from jax import export
from jax.sharding import AbstractMesh, AxisType

from kernel_audit.contract import FunctionRef
from kernel_audit.contract.dtypes import is_float
from kernel_audit.matrix.loading import load_function
from kernel_audit.matrix.subject_job import Subject
from kernel_audit.measure.comparison import BYTES, WIDE
from kernel_audit.oracle.lifted import lifted
from kernel_audit.program import Generic
from kernel_audit.records import ProgramPlan
from kernel_audit.target.sharded import AXIS

PLATFORMS = ("cpu", "cuda")  # a GPU calculates in float64 itself, which saves large operands the way to the host


def references(
    steps: Any,
    *,
    audit: dict[str, Any],
    roots: list[str],
    programs: list[dict[str, Any]],
    step: dict[str, Any] | None,
) -> None:
    """One step of the job a program: array "bytes" holds an exported program, "wide" says whether it calculates in float64: on
    the host, or on a GPU.

    With `step`, the reference is that of the complete step, with the baseline in float64 in place. Runs in 64-bit mode.
    """
    subject = Subject(steps, audit, audit["baselines"][0]["function"], roots)
    whole = None
    if step is not None:
        whole = load_function(msgspec.convert(step, FunctionRef), [Path(each) for each in roots])
    for plan in msgspec.convert(programs, list[ProgramPlan]):
        steps.begin(plan.key)
        with jax.enable_x64(False):
            program = subject.capture(plan, tuned=False)
            exact = subject.audit.agreement.kind != "derived" and whole is None
            data = program.export(Generic()) if exact else b""
        if not exact:
            made = lifted(program.jaxpr) if whole is None else _whole(whole, program)
            specs = [jax.ShapeDtypeStruct(each.shape, _wide(each.dtype)) for each in program.specs]
            data = bytes(export.export(jax.jit(made), platforms=PLATFORMS)(*specs).serialize())
        steps.finish(plan.key, {WIDE: not exact, "program": program.digest}, {BYTES: np.frombuffer(data, np.uint8)})


def _whole(step: Any, program: Any) -> Any:
    """The complete step in float64, on one device."""
    evaluate = lifted(program.jaxpr)
    mesh = AbstractMesh((1,), (AXIS,), axis_types=(AxisType.Auto,))

    def local(*shards: Any) -> Any:
        return jax.tree.unflatten(program.out_tree, evaluate(*shards))

    made, _ = step(local, mesh)
    return lambda *operands: jax.tree.leaves(made(*operands))


def _wide(dtype: Any) -> np.dtype:
    return np.dtype("float64") if is_float(np.dtype(dtype).name) else np.dtype(dtype)
