"""Job of a baseline's worker: a comparison's reference as bytes for a CPU, which timing processes run beside the device.

It is the first baseline, in float64 where the agreement is derived, else in its own arithmetic: rounded as the contract says,
so that an exact agreement can be held to it. A process that times a candidate imports no file of the audit, so the reference
cannot be a function; the oracle itself judges complete outputs in a worker of its own.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jax
import msgspec
import numpy as np
from jax import export
from jax.sharding import AbstractMesh, AxisType

from kernel_audit.contract import FunctionRef, Operand, Workload
from kernel_audit.contract.dtypes import is_float
from kernel_audit.matrix.loading import as_keywords, load_function
from kernel_audit.matrix.subject_job import Subject
from kernel_audit.measure.comparison import BYTES, INPUTS, WIDE
from kernel_audit.oracle.lifted import lifted
from kernel_audit.program import Generic
from kernel_audit.records import ProgramPlan
from kernel_audit.target.sharded import AXIS
from kernel_audit.workload.inputs import axis_of, drawn, represented

MOST_INPUT_BYTES = 512 << 20  # of a workload's examples in float64: timing draws its operands from so many
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

    With `step`, the reference is that of the complete step, with the baseline in float64 in place: of the workload's operands
    where the audit has one. What its `inputs` give is the step INPUTS, an array an operand. Runs in 64-bit mode.
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
            made, specs = lifted(program.jaxpr), [(each.shape, each.dtype) for each in program.specs]
            if whole is not None:
                made, specs = _whole(whole, subject, plan), _step_specs(subject, plan, specs)
            wide = [jax.ShapeDtypeStruct(shape, _wide(dtype)) for shape, dtype in specs]
            data = bytes(export.export(jax.jit(made), platforms=PLATFORMS)(*wide).serialize())
        steps.finish(plan.key, {WIDE: not exact, "program": program.digest}, {BYTES: np.frombuffer(data, np.uint8)})
    workload = subject.audit.workload
    if whole is not None and workload is not None and workload.inputs is not None:
        steps.begin(INPUTS)
        steps.finish(INPUTS, {}, _examples(workload, subject.roots, programs[0]["binding"]))


def _whole(step: Any, subject: Subject, plan: ProgramPlan) -> Any:
    """The complete step in float64, on one device. The baseline is traced for what the step gives it, in its own dtypes."""
    workload = subject.audit.workload
    mesh = AbstractMesh((1,), (AXIS,), axis_types=(AxisType.Auto,))
    dtypes = [plan.binding.get(each.dtype, each.dtype) for each in subject.audit.operands]

    def local(*shards: Any) -> Any:
        given = [jax.ShapeDtypeStruct(each.shape, dtype) for each, dtype in zip(shards, dtypes, strict=True)]
        with jax.enable_x64(False):
            program = subject.captured(tuple(given), as_keywords(plan.mode), plan.dims)
        return jax.tree.unflatten(program.out_tree, lifted(program.jaxpr)(*shards))

    made, _ = step(local, mesh, **as_keywords(workload.options if workload is not None else {}))
    return lambda *operands: jax.tree.leaves(made(*operands))


def _step_specs(subject: Subject, plan: ProgramPlan, own: list[Any]) -> list[Any]:
    """Shapes and dtypes of the step's operands: the workload's; without one those of the function, `own`."""
    workload = subject.audit.workload
    if workload is None:
        return own
    return [
        (each.shape(workload.declared), np.dtype(plan.binding.get(each.dtype, each.dtype)))
        for each in workload.operands
    ]


def _examples(workload: Workload, roots: list[Path], binding: dict[str, str]) -> dict[str, np.ndarray]:
    """The operands that `inputs` gives at the declared sizes, in their own dtypes; examples up to MOST_INPUT_BYTES."""
    assert workload.inputs is not None
    one = 8 * sum(_elements_of_one(workload, each) for each in workload.operands)
    examples = max(1, min(workload.declared[workload.examples], MOST_INPUT_BYTES // max(1, one)))
    sized = msgspec.structs.replace(workload, dims=workload.declared)
    return represented(sized, drawn(sized, load_function(workload.inputs, roots), examples), binding)


def _elements_of_one(workload: Workload, operand: Operand) -> int:
    """Elements of an operand that one example has; 0 where all devices share it."""
    if axis_of(workload, operand) is None:
        return 0
    return math.prod(operand.shape({**workload.declared, workload.examples: 1}))


def _wide(dtype: Any) -> np.dtype:
    return np.dtype("float64") if is_float(np.dtype(dtype).name) else np.dtype(dtype)
