"""The frozen operands of a step: drawn, rounded to their dtypes, and laid out for a partition. NumPy on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernel_audit.contract import Operand, Workload
from kernel_audit.contract.step_partitions import PERMUTED
from kernel_audit.errors import AuditFileError
from kernel_audit.records import StepPartition, digest_bytes

Arrays = dict[str, np.ndarray]
Inputs = Callable[[np.random.Generator, dict[str, int]], Arrays]
RULE = "each operand standard normal, in the order of the operands"
# What lies in the rows that are no examples: nothing of it may reach a result.
POISON, FINITE = "nan", "finite"


def drawn(workload: Workload, inputs: Inputs | None, examples: int) -> Arrays:
    """The operands in float64, for so many examples. Raises AuditFileError for those that `inputs` leaves out or misshapes."""
    rng = np.random.default_rng(workload.seed)
    dims = {**workload.dims, workload.examples: examples}
    if inputs is None:
        return {each.name: rng.standard_normal(each.shape(dims)) for each in workload.operands}
    given = inputs(rng, dims)
    for each in workload.operands:
        shape = np.shape(given[each.name]) if each.name in given else None
        if shape != each.shape(dims):
            raise AuditFileError(
                "inputs of another shape than the step's operands",
                stage="workload",
                where=f"{each.name} of {workload.inputs.text if workload.inputs else 'the inputs'}",
                expected=str(list(each.shape(dims))),
                got="no such operand" if shape is None else str(list(shape)),
                settled=dims,
            )
    return {each.name: np.asarray(given[each.name]) for each in workload.operands}


def digests(arrays: Arrays) -> dict[str, str]:
    """The digest of each array's bytes."""
    return {name: digest_bytes(np.ascontiguousarray(each).tobytes()) for name, each in arrays.items()}


def represented(workload: Workload, arrays: Arrays, binding: dict[str, str]) -> Arrays:
    """The operands in their own dtypes."""
    import ml_dtypes  # noqa: F401  (makes the dtype names known to NumPy)

    dtypes = {each.name: np.dtype(binding.get(each.dtype, each.dtype)) for each in workload.operands}
    return {name: each.astype(dtypes[name]) for name, each in arrays.items()}


def widened(arrays: Arrays) -> Arrays:
    """The stored values in float64; integers stay what they are."""
    return {name: each if each.dtype.kind in "iub" else each.astype(np.float64) for name, each in arrays.items()}


def axis_of(workload: Workload, operand: Operand) -> int | None:
    """Along which axis an operand has examples; None: it is on every device."""
    return operand.dims.index(workload.examples) if workload.examples in operand.dims else None


def part(workload: Workload, arrays: Arrays, places: np.ndarray) -> Arrays:
    """The operands of some of the examples."""
    axes = {each.name: axis_of(workload, each) for each in workload.operands}
    return {name: each if axes[name] is None else np.take(each, places, axes[name]) for name, each in arrays.items()}


def places_of(workload: Workload, partition: StepPartition) -> list[np.ndarray]:
    """Which examples lie on each device."""
    order = np.arange(partition.examples)
    if partition.order == PERMUTED:
        order = np.random.default_rng(workload.seed + 1).permutation(partition.examples)
    return np.split(order, np.cumsum(partition.counts)[:-1])


def repeated(places: list[np.ndarray]) -> list[np.ndarray]:
    """The same counts, every device having its first example again and again: in what order they lie does not matter then."""
    return [np.repeat(each[:1], len(each)) for each in places]


def laid_out(
    workload: Workload, arrays: Arrays, partition: StepPartition, places: list[np.ndarray], filling: str
) -> Arrays:
    """The operands as the step takes them: `rows` a device, the examples first, then `filling`."""
    found = {}
    for operand in workload.operands:
        array, axis = arrays[operand.name], axis_of(workload, operand)
        if axis is None:
            found[operand.name] = array
            continue
        shape = [*array.shape[:axis], partition.rows * partition.devices, *array.shape[axis + 1 :]]
        padded = np.full(shape, _filling(array.dtype, filling), array.dtype)
        for device, mine in enumerate(places):
            start = device * partition.rows
            target: list[Any] = [slice(None)] * array.ndim
            target[axis] = slice(start, start + len(mine))
            padded[tuple(target)] = np.take(array, mine, axis)
        found[operand.name] = padded
    return found


def _filling(dtype: np.dtype, filling: str) -> Any:
    if dtype.kind in "iu":
        return np.iinfo(dtype).max // 2
    if dtype.kind == "b":
        return True
    return np.nan if filling == POISON else 7.0
