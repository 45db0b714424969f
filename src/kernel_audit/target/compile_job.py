"""Job of a compile worker: programs from bytes through the real compiler of one described target.

The worker has an environment of its own, set before any backend starts; it never imports a candidate. What the compiler
dumps lies in the worker's scratch folder and goes with it.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import jax
import msgspec
import numpy as np
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from kernel_audit.program import LoadedProgram, load
from kernel_audit.program.raised import without_folders
from kernel_audit.records import CompiledKernel, MemoryUse, device_of
from kernel_audit.target.compiled import CompilerOutput, memory_spaces, read_compiled
from kernel_audit.target.described import first_topology, undescribed
from kernel_audit.target.environment import DUMP
from kernel_audit.target.refusal import reason_of
from kernel_audit.worker import read_arrays


def compile_programs(steps: Any, *, target: dict[str, Any], programs: list[dict[str, Any]]) -> None:
    """One step a program, "PART KEY". Its value is a `Reading` with memory and seconds, or {"reason": ...}.

    Each of `programs` has "part", "key", "folder" (of the job that exported it) and "kernels"; `target` has "platform",
    "topology" and "config" (text).
    """
    dump = Path(os.environ["TMPDIR"]) / DUMP
    devices = _devices(target)
    for each in programs:
        name = f"{each['part']} {each['key']}"
        steps.begin(name)
        data = read_arrays(Path(each["folder"]), each["key"])["bytes"].tobytes()
        shutil.rmtree(dump, ignore_errors=True)
        dump.mkdir(parents=True)
        steps.finish(name, _compiled(data, each, devices, dump, target.get("capability", "")))


def _devices(target: dict[str, Any]) -> list[Any]:
    if target["platform"] == "gpu":
        topology = topologies.get_topology_desc(
            platform="cuda", target_config=target["config"], topology=target["topology"]
        )
        return list(topology.devices)
    try:
        return _tpu_devices(target["topology"])
    except Exception as error:
        device = device_of(target["name"])
        generation, _, extent = target["topology"].partition(":")
        if extent != (known := first_topology(device)):
            _tpu_devices(f"{generation}:{known}")  # raises where the compiler does not start at all
            raise undescribed(device, extent, without_folders(str(error))) from None
        raise


def _tpu_devices(topology: str) -> list[Any]:
    return list(topologies.get_topology_desc(topology_name=topology, platform="tpu").devices)


def _compiled(data: bytes, asked: dict[str, Any], devices: list[Any], dump: Path, capability: str) -> dict[str, Any]:
    program = load(data)
    started = time.perf_counter()
    lowered = _lowered(program, devices)
    try:
        compiled = lowered.compile()
    except Exception as error:
        message = without_folders(str(error))
        reason = reason_of(type(error).__name__, message, stage="compiler", lowered=lowered.as_text())
        return {"reason": msgspec.to_builtins(reason), "compile_s": time.perf_counter() - started}
    compile_s = time.perf_counter() - started
    kernels = msgspec.convert(asked["kernels"], list[CompiledKernel])
    text = compiled.as_text()
    found = read_compiled(CompilerOutput(text, program.sidecar.platform, kernels, dump, capability))
    return {
        **msgspec.to_builtins(found),
        "memory": _memory(compiled, text),
        "compile_s": compile_s,
    }


def _lowered(program: LoadedProgram, devices: list[Any]) -> Any:
    platform = program.sidecar.platform
    shardings = _shardings(program, devices)
    avals = [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype, sharding=lay)
        for aval, lay in zip(program.exported.in_avals, shardings, strict=True)
    ]
    jitted = jax.jit(program.exported.call, donate_argnums=tuple(program.sidecar.donated))
    return jitted.trace(*avals).lower(lowering_platforms=(platform,))


def _shardings(program: LoadedProgram, devices: list[Any]) -> list[Any]:
    if not program.sidecar.mesh:
        return [SingleDeviceSharding(devices[0])] * len(program.exported.in_avals)
    names = tuple(name for name, _ in program.sidecar.mesh)
    sizes = tuple(size for _, size in program.sidecar.mesh)
    grid = np.array(devices[: int(np.prod(sizes))]).reshape(sizes)
    mesh = Mesh(grid, names, axis_types=(AxisType.Auto,) * len(names))
    specs = [
        PartitionSpec(*[tuple(e) if isinstance(e, list) else e for e in spec or []]) for spec in program.sidecar.specs
    ]
    return [NamedSharding(mesh, each) for each in specs]


def _memory(compiled: Any, text: str) -> dict[str, Any]:
    told = compiled.memory_analysis()
    return msgspec.to_builtins(
        MemoryUse(
            arguments_bytes=int(told.argument_size_in_bytes),
            results_bytes=int(told.output_size_in_bytes),
            aliased_bytes=int(told.alias_size_in_bytes),
            temporary_bytes=int(told.temp_size_in_bytes),
            code_bytes=int(told.generated_code_size_in_bytes),
            spaces=memory_spaces(text),
        )
    )
