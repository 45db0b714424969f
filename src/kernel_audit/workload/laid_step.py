"""A step with a function in place, traced and compiled for one mesh of logical devices; where its arrays were seen to lie."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding

from kernel_audit.contract import Workload
from kernel_audit.contract.step_partitions import QUICK
from kernel_audit.program import CandidateRaised, Generic, Program, capture, compat, described, refuse_by_name
from kernel_audit.program.executable import advice_left_out
from kernel_audit.program.varying_axes import check_vma_everywhere
from kernel_audit.records import PlacedArray, StepPartition
from kernel_audit.workload.inputs import Arrays, axis_of

StepFactory = Callable[..., tuple[Callable[..., Any], Sequence[Any]]]


@dataclass
class LaidStep:
    """A compiled step. `asked` are the shardings of its operands, in order; `specs` as text."""

    workload: Workload
    program: Program
    compiled: Any
    asked: list[NamedSharding]
    mesh: Mesh
    compile_s: float
    vma: str

    def place(self, arrays: Arrays) -> list[jax.Array]:
        """The operands on the devices, as asked."""
        named = [arrays[each.name] for each in self.workload.operands]
        return [_placed_as(each, to) for each, to in zip(named, self.asked, strict=True)]

    def __call__(self, placed: Sequence[jax.Array]) -> list[jax.Array]:
        """One step, waited for: jax 0.9.2 aborts when too many steps with collectives are under way."""
        with advice_left_out():
            return jax.block_until_ready(list(self.compiled(*placed)))

    def carried(self, placed: list[jax.Array], results: list[jax.Array]) -> list[jax.Array]:
        """The operands of the next step: new state in the place of the old."""
        following = list(placed)
        for index, each in enumerate(self.workload.operands):
            if each.name in self.workload.state:
                result = results[self.workload.state[each.name]]
                same = result.sharding.is_equivalent_to(self.asked[index], result.ndim)
                following[index] = result if same else jax.device_put(result, self.asked[index])
        return following


def _placed_as(array: np.ndarray, sharding: NamedSharding) -> jax.Array:
    """A committed array; each of several processes gives the parts of its own devices."""
    if jax.process_count() == 1:
        return jax.device_put(array, sharding)
    return jax.make_array_from_callback(array.shape, sharding, lambda index: array[index])


def mesh_of(partition: StepPartition) -> Mesh:
    """The partition's mesh over the first logical devices."""
    sizes = tuple(partition.mesh.values())
    devices = np.array(jax.devices()[: math.prod(sizes)]).reshape(sizes)
    return Mesh(devices, tuple(partition.mesh), axis_types=(AxisType.Auto,) * len(sizes))


def lay(
    workload: Workload, factory: StepFactory, local: Callable[..., Any], partition: StepPartition, **about: Any
) -> LaidStep:
    """The step for one partition; `about` has `binding` (dtypes) and `device_kind`.

    Raises CandidateRaised for a factory or a step that raises; CaptureError, or what XLA raises, for one that does not compile.
    """
    mesh = mesh_of(partition)
    counts = None if partition.whole else tuple(partition.counts)
    try:
        function, specs = factory(local, mesh, counts, **workload.options)
    except Exception as error:
        raise CandidateRaised(error, where=workload.step.text) from error
    asked = [NamedSharding(mesh, each) for each in specs]
    operands = _operands(workload, partition, about["binding"], asked)
    program = capture(function, operands, device_kind=about["device_kind"])
    refuse_by_name(program, Generic())
    jaxpr = program.in_mode(Generic())
    jitted = jax.jit(lambda *leaves: compat.evaluate(jaxpr, leaves), donate_argnums=program.donated)
    started = time.perf_counter()
    with described(about["device_kind"]), advice_left_out():
        compiled = jitted.lower(*operands).compile()
    seconds = time.perf_counter() - started
    vma = _with_check(function, operands, about) if partition.name in QUICK else ""
    return LaidStep(workload, program, compiled, asked, mesh, seconds, vma)


def _operands(
    workload: Workload, partition: StepPartition, binding: dict[str, str], asked: list[NamedSharding]
) -> list[jax.ShapeDtypeStruct]:
    dims = {**workload.dims, workload.examples: partition.rows * partition.devices}
    return [
        jax.ShapeDtypeStruct(each.shape(dims), binding.get(each.dtype, each.dtype), sharding=sharding)
        for each, sharding in zip(workload.operands, asked, strict=True)
    ]


def _with_check(function: Callable[..., Any], operands: list[jax.ShapeDtypeStruct], about: dict[str, Any]) -> str:
    """What tracing with `check_vma=True` says; a step needs not pass, as many kernels cannot say over what they vary."""
    with check_vma_everywhere(), described(about["device_kind"]):
        try:
            jax.make_jaxpr(lambda *given: function(*given))(*operands)
        except Exception as error:
            first = (str(error).strip().splitlines() or [""])[0]
            return f"refused: {type(error).__name__}: {first}"[:200]
    return "passes"


def observed_operands(step: LaidStep, placed: list[jax.Array], partition: StepPartition) -> list[PlacedArray]:
    """Where the compiled step has its operands: asked, placed and compiled must be the same, and examples must be split."""
    compiled = step.compiled.input_shardings[0]
    found = []
    for operand, array, asked, seen in zip(step.workload.operands, placed, step.asked, compiled, strict=True):
        axis = axis_of(step.workload, operand)
        as_asked = seen.is_equivalent_to(asked, array.ndim) and array.sharding.is_equivalent_to(asked, array.ndim)
        record = _placed(operand.name, array, step.mesh, str(asked.spec), as_asked)
        if axis is not None and any(shard[axis][1] - shard[axis][0] != partition.rows for shard in record.shards):
            record = _placed(operand.name, array, step.mesh, str(asked.spec), False)
        found.append(record)
    return found


def observed_results(step: LaidStep, results: list[jax.Array]) -> list[PlacedArray]:
    """Where loss, gradients and state came out: a state as its operand is, the loss on every device."""
    workload = step.workload
    specs = {each.name: asked for each, asked in zip(workload.operands, step.asked, strict=True)}
    named = {"loss": (workload.loss, None)}
    named |= {f"gradient:{name}": (place, specs[name]) for name, place in workload.gradient.items()}
    named |= {f"state:{name}": (place, specs[name]) for name, place in workload.state.items()}
    found = []
    for name, (place, asked) in named.items():
        array = results[place]
        as_asked = array.sharding.is_equivalent_to(asked, array.ndim) if asked else array.sharding.is_fully_replicated
        found.append(_placed(name, array, step.mesh, str(asked.spec) if asked else "PartitionSpec()", as_asked))
    return found


def _placed(name: str, array: jax.Array, mesh: Mesh, spec: str, as_asked: bool) -> PlacedArray:
    where = array.sharding.devices_indices_map(array.shape)
    shards = [
        [list(part.indices(size)[:2]) for part, size in zip(where[device], array.shape, strict=True)]
        if device in where
        else []
        for device in mesh.devices.flat
    ]
    return PlacedArray(
        name=name, dtype=array.dtype.name, shape=list(array.shape), spec=spec, shards=shards, as_asked=as_asked
    )


def copies(array: jax.Array, mesh: Mesh) -> np.ndarray:
    """What each device holds of a replicated array, stacked in the mesh's order; of another the whole, as one copy."""
    if not array.sharding.is_fully_replicated:
        return np.asarray(array)[None]
    held = {each.device: np.asarray(each.data) for each in array.addressable_shards}
    return np.stack([held[device] for device in mesh.devices.flat if device in held])
