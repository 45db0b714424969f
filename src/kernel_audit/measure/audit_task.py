"""What an audit's programs are timed on: its operands from a seed, and what their results must be. In a timing process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes  # noqa: F401  (registers bfloat16 with NumPy)
import msgspec
import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.contract.dtypes import is_float
from kernel_audit.fixture import originals, represented
from kernel_audit.measure.comparison import BYTES
from kernel_audit.oracle import unit_in_last_place
from kernel_audit.program import load
from kernel_audit.records import Fixture
from kernel_audit.timing.task import Arrays, Task
from kernel_audit.worker import read_arrays
from kernel_audit.workload.inputs import axis_of

EXACT = "the reference of the contract on the host, bit for bit but for the sign of a zero"
BUDGETED = "the reference in float64; within what the contract's factor times a baseline's own error allows"


def task(
    *,
    audit: dict[str, Any],
    dims: dict[str, int],
    binding: dict[str, str],
    reference: dict[str, Any],
    budgets: list[float] | None,
    large: bool,
    family: str = "normal",
) -> Task:
    """The task of a comparison. `audit` and `dims` are as `put_to` gives them. `reference` has "folder", "step" and "wide", of
    a complete step "whole" and, where its workload has `inputs`, "inputs" (see reference_job); `budgets`, one a result, are the
    largest errors allowed, None for exact agreement. `large`: operands are drawn on the device."""
    contract = msgspec.convert(audit, Audit)
    frozen = reference.get("inputs")

    def make(seed: int) -> Arrays:
        fixture = Fixture(name="timed", dims=dims, family=family, seed=seed)
        return list(represented(contract, originals(contract, fixture), binding).values())

    def again(seed: int) -> Arrays:
        return resampled(contract, dims, _stored(reference["folder"], frozen), seed)

    on_device = None
    if large:
        on_device = _on_device(contract, dims, reference) if frozen else _generator(contract, dims, binding)
    return Task(
        make=again if frozen else make,
        expected=lambda operands: expected(reference, operands, large=large),
        agree=agreement(contract, budgets),
        how=EXACT if budgets is None else BUDGETED,
        generate=on_device,
    )


def resampled(audit: Audit, dims: dict[str, int], stored: dict[str, Any], seed: int, arrays: Any = np) -> list[Any]:
    """A step's operands with as many examples as it takes, drawn from `stored` ones with replacement: the workload's own values
    without a set coming twice. `arrays` is NumPy, or jax.numpy for values that are on the device."""
    workload = audit.workload
    assert workload is not None
    axes = {each.name: axis_of(workload, each) for each in workload.operands}
    there = next(stored[name].shape[axis] for name, axis in axes.items() if axis is not None)
    places = np.random.default_rng(seed).integers(there, size=dims[workload.examples])
    return [
        stored[name] if axis is None else arrays.take(stored[name], arrays.asarray(places), axis)
        for name, axis in axes.items()
    ]


def expected(reference: dict[str, Any], operands: Sequence[Any], *, large: bool = False) -> Arrays:
    """Results of the reference for these operands, on this process's CPU; of large ones, and of a complete step, on its GPU."""
    call, specs = _reference(reference["folder"], reference["step"], reference["wide"])
    there = (large or reference.get("whole")) and reference["wide"] and jax.default_backend() == "gpu"
    device = jax.local_devices(backend=None if there else "cpu")[0]
    with jax.enable_x64(reference["wide"]), jax.default_device(device):
        values = operands if there else [np.asarray(each) for each in operands]
        given = [jax.device_put(each.astype(spec.dtype), device) for each, spec in zip(values, specs, strict=True)]
        return [np.asarray(each) for each in call(*given)]


def agreement(audit: Audit, budgets: list[float] | None) -> Callable[[Arrays, Arrays], str]:
    """What the timed results are held to; "" or what differs. Shapes first: broadcasting hides a lost dimension."""

    def agree(actual: Arrays, wanted: Arrays) -> str:
        if len(actual) != len(wanted):
            return f"{len(actual)} results instead of {len(wanted)}"
        for place, (ours, theirs) in enumerate(zip(actual, wanted, strict=True)):
            if ours.shape != theirs.shape:
                return f"result {place} has shape {ours.shape} instead of {theirs.shape}"
            off = distance(ours, theirs)
            allowed = _allowed(audit, ours, theirs, None if budgets is None else budgets[place])
            wrong = ~(off <= allowed)
            if wrong.any():
                return f"result {place}: {int(wrong.sum())} of {wrong.size} elements differ, by up to {np.max(off):.3g}"
        return ""

    return agree


def distance(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """|ours - theirs| in float64; 0 where both are the same, NaN and infinities included."""
    left, right = ours.astype(np.float64), theirs.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(left - right)
    return np.where((left == right) | (np.isnan(left) & np.isnan(right)), 0.0, off)


def _allowed(audit: Audit, ours: np.ndarray, theirs: np.ndarray, budget: float | None) -> Any:
    if not is_float(ours.dtype.name):
        return 0.0
    wide = theirs.astype(np.float64)
    if budget is not None:
        return budget + unit_in_last_place(wide, ours.dtype.name) / 2
    if audit.agreement.kind == "ulp":
        return audit.agreement.ulps * unit_in_last_place(wide, ours.dtype.name)
    return 0.0


def _generator(audit: Audit, dims: dict[str, int], binding: dict[str, str]) -> Callable[[int], Sequence[Any]]:
    """Standard normal values drawn on the device, rounded to each operand's dtype; whole numbers in [-8, 8)."""
    shapes = [(each.shape(dims), binding.get(each.dtype, each.dtype)) for each in audit.operands]

    def drawn(key: jax.Array) -> list[jax.Array]:
        keys = jax.random.split(key, len(shapes))
        return [
            jax.random.normal(one, shape, jnp.float32).astype(dtype)
            if is_float(dtype)
            else jax.random.randint(one, shape, -8, 8).astype(dtype)
            for one, (shape, dtype) in zip(keys, shapes, strict=True)
        ]

    made = jax.jit(drawn)
    return lambda seed: made(jax.random.key(seed & 0x7FFFFFFF))


def _on_device(audit: Audit, dims: dict[str, int], reference: dict[str, Any]) -> Callable[[int], Sequence[Any]]:
    """`resampled` with the stored examples on the device."""
    stored = {name: jax.device_put(each) for name, each in _stored(reference["folder"], reference["inputs"]).items()}
    return lambda seed: resampled(audit, dims, stored, seed, jnp)


@cache
def _stored(folder: str, step: str) -> dict[str, np.ndarray]:
    return read_arrays(Path(folder), step)


@cache
def _reference(folder: str, step: str, wide: bool) -> tuple[Any, list[Any]]:
    from jax import export

    data = read_arrays(Path(folder), step)[BYTES].tobytes()
    exported = export.deserialize(bytearray(data)) if wide else load(data).exported
    return jax.jit(exported.call), list(exported.in_avals)
