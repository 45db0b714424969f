"""What a kernel needs of a target, as a model: storage of its buffers, and the least time that published peaks allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from kernel_audit.inspect.body import equations_within
from kernel_audit.inspect.equation import SLOTS, KernelEquation, Mapping, bytes_of, space_of
from kernel_audit.inspect.index_map import driving_axes
from kernel_audit.program import compat
from kernel_audit.program.rewrite import inner_jaxprs
from kernel_audit.records import Buffer, DeviceDescription, Dot, Fit


def slots_of(mapping: Mapping, platform: str) -> int:
    """Buffers of a mapping: as stated, else two on a TPU; one where there is no pipeline of blocks."""
    if not mapping.piped:
        return 0
    return mapping.slots or (SLOTS if platform == "tpu" else 1)


def scratch_buffers(kernel: KernelEquation) -> list[Buffer]:
    return _buffers(kernel.scratch)


def allocated_buffers(kernel: KernelEquation) -> list[Buffer]:
    """What the body allocates by `run_scoped`, at every depth."""
    found: list[Buffer] = []
    for equation in equations_within(kernel.body):
        if equation.primitive.name == "run_scoped":
            found += _buffers(compat.open_jaxpr(equation.params["jaxpr"]).invars)
    return found


def _buffers(variables: Sequence[Any]) -> list[Buffer]:
    made = []
    for each in variables:
        if hasattr(each.aval, "inner_aval") and not compat.is_semaphore(each.aval):
            shape = [int(size) for size in each.aval.shape]
            made.append(Buffer(shape=shape, dtype=str(each.aval.dtype), memory_space=space_of(each.aval)))
    return made


def buffer_model(kernel: KernelEquation, *, least: bool = False) -> int:
    """Bytes in fast memory: slots x block for each blocked operand and result, and what the kernel holds for itself.

    `least`: one slot for a block that never changes and no more than two for others, the smallest use that a pipeline
    can have; what is above the limit then is so whatever the compiler does.
    """
    total = 0
    for mapping in kernel.mappings:
        slots = slots_of(mapping, kernel.platform)
        if least and mapping.piped and mapping.slots is None:
            varying = [axis for axis in driving_axes(mapping, len(kernel.grid)) if kernel.grid[axis] != 1]
            slots = slots if varying else 1
        if mapping.memory_space != "smem":
            total += slots * mapping.block_bytes
    return total + _held(kernel.scratch) + _most_alive(kernel.body)


def _held(variables: Sequence[Any]) -> int:
    """Bytes in fast memory of references."""
    buffers = [each.aval for each in variables if hasattr(each.aval, "inner_aval")]
    return sum(
        bytes_of(math.prod(aval.shape), aval.dtype)
        for aval in buffers
        if space_of(aval) in ("vmem", "default") and not compat.is_semaphore(aval)
    )


def _most_alive(jaxpr: Any) -> int:
    """Bytes of the scopes that are alive together where they are most: one inside another, never one after another."""
    most = 0
    for equation in compat.open_jaxpr(jaxpr).eqns:
        for _, _, inner in inner_jaxprs(equation.params):
            own = _held(compat.open_jaxpr(inner).invars) if equation.primitive.name == "run_scoped" else 0
            most = max(most, own + _most_alive(inner))
    return most


def fit(
    device: DeviceDescription, model_bytes: int, moved: int | None, operations: int | None, dots: Sequence[Dot]
) -> Fit:
    """The model beside a target's memory, and max(bytes / bandwidth, operations / peak). Never a time.

    The peak is that of the narrowest dtype that a matrix product reads, where one is published; without a matrix product
    no peak applies and bytes alone count.
    """
    memory_s = None if moved is None else moved / device.hbm_bytes_per_s
    peak, name = _peak(device, dots)
    arithmetic_s = operations / peak if peak and operations else None
    known = [
        (seconds, by) for seconds, by in ((memory_s, "memory"), (arithmetic_s, "arithmetic")) if seconds is not None
    ]
    floor_s, bound_by = max(known) if known and memory_s is not None else (None, "not known")
    source = device.sources["hbm_bytes_per_s"]
    if bound_by == "arithmetic":
        source = f"{name} peak: {device.sources['peak_flops']}"
    limit = device.fast_bytes
    share = model_bytes / limit if device.kind == "tpu" else 0.0
    return Fit(target=device.name, limit_bytes=limit, share=share, floor_s=floor_s, bound_by=bound_by, source=source)


def _peak(device: DeviceDescription, dots: Sequence[Dot]) -> tuple[float, str]:
    for each in dots:
        dtype = each.left.partition("[")[0]
        if dtype in device.peak_flops:
            return device.peak_flops[dtype], dtype
        if dtype == "float32" and "bfloat16" in device.peak_flops and device.kind == "tpu":
            # No float32 peak is published: a product in one bfloat16 pass is the fastest that there can be.
            return device.peak_flops["bfloat16"], "bfloat16"
    return 0.0, ""
