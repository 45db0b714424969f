"""From the planes of a trace to events. A pure function: any objects with `name`, `lines`, `events` will do as planes.

What is where was found by running on CPU (planes of CPU traces); TPU and GPU planes are read by the profiler's
published schema and were never seen here, so what comes of them is marked unverified.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STAGE, EXECUTE = "region.input-staging", "region.execute"
STEP = "step"  # the name of the step annotation; its stat `step_num` counts
_DEVICE = re.compile(r"/device:(GPU|TPU):(\d+)")
_SKIPPED = ("$", "ThreadpoolListener")  # Python frames, and the runtime's own bookkeeping
_LATE_NS = 2000.0  # an end marker this much after the event's own end is the true end
_COMPILING = ("backend_compile", "CpuCompiler::")


@dataclass(slots=True)
class Operation:
    """One execution of one instruction on one device. Times in ns. `thread` is the line it was seen on.

    `background`: it runs beside others and is waited for, such as an asynchronous transfer. `late_end_ns`: when another thread
    said that it was done, where that is later than `end_ns`; the mark may come long after, so that a user of the operation that
    has started is a better witness.
    """

    device: int
    name: str
    module: str
    start_ns: float
    end_ns: float
    thread: str
    background: bool = False
    late_end_ns: float = 0.0
    opcode: str = ""  # where the trace itself tells, and the program's text does not: copies between host and device


@dataclass
class Trace:
    """All that is read from a trace. `steps` are (number, start, end) in order, `host` (region, start, end) from annotations.
    `reader` is "cpu", "gpu" or "tpu". `late_ends` counts operations that another thread finished."""

    steps: list[tuple[int, float, float]] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    host: list[tuple[str, float, float]] = field(default_factory=list)
    reader: str = "cpu"
    late_ends: int = 0
    compile_events: int = 0

    @property
    def verified(self) -> bool:
        """Whether this reader was held against a run on such a device."""
        return self.reader == "cpu"


def read_planes(planes: Iterable[Any]) -> Trace:
    """The events of a step's trace.

    Planes `/device:TPU:k`: line "XLA Ops", and "Async XLA Ops" as background. `/device:GPU:k`: lines "Stream #...".
    Else, on the host: events with a stat `hlo_op`, by `device_ordinal`. Other lines of device planes hold the same time
    again.
    """
    trace = Trace()
    ends: dict[Any, float] = {}
    flows: list[tuple[Operation, Any]] = []
    for plane in planes:
        device = _DEVICE.match(plane.name)
        if device:
            trace.reader = device.group(1).lower()
        for line in plane.lines:
            if device:
                _read_device_line(trace, line, device.group(1), int(device.group(2)))
            else:
                _read_host_line(trace, line, ends, flows)
    for operation, flow in flows:
        end = ends.get(flow)
        if end is not None and end > operation.end_ns + _LATE_NS:
            operation.late_end_ns = end
            trace.late_ends += 1
    trace.steps.sort()
    return trace


def _read_device_line(trace: Trace, line: Any, kind: str, device: int) -> None:
    name = line.name
    ours = name in ("XLA Ops", "Async XLA Ops") if kind == "TPU" else name.startswith("Stream #")
    if not ours:
        return
    thread = f"{kind}:{device}/{name}"
    for event in line.events:
        stats = _stats(event)
        operation = stats.get("hlo_op")
        opcode = ""
        if operation is None and "memcpy_details" in stats:
            operation, opcode = event.name, _copy_kind(event.name)
        elif operation is None and kind == "GPU":
            continue
        made = Operation(
            device,
            str(operation or event.name),
            str(stats.get("hlo_module", "")),
            event.start_ns,
            event.end_ns,
            thread,
            background=name.startswith("Async"),
            opcode=opcode,
        )
        trace.operations.append(made)


def _copy_kind(name: str) -> str:
    return "host-to-device" if "H2D" in name else "device-to-host" if "D2H" in name else "copy"


def _read_host_line(trace: Trace, line: Any, ends: dict[Any, float], flows: list[tuple[Operation, Any]]) -> None:
    thread = line.name
    for event in line.events:
        name = event.name
        if name.startswith(_SKIPPED):
            continue
        if name.startswith("end: "):
            ends[_stats(event).get("_c")] = event.start_ns
        elif name.startswith("region."):
            trace.host.append((name.removeprefix("region."), event.start_ns, event.end_ns))
        elif name.startswith(_COMPILING):
            trace.compile_events += 1
        else:
            stats = _stats(event)
            if "hlo_op" in stats:
                device = int(stats.get("device_ordinal", 0))
                module = str(stats.get("hlo_module", ""))
                made = Operation(device, str(stats["hlo_op"]), module, event.start_ns, event.end_ns, thread)
                trace.operations.append(made)
                flows.append((made, stats.get("_p")))
            elif name == STEP and "step_num" in stats:
                trace.steps.append((int(stats["step_num"]), event.start_ns, event.end_ns))


def _stats(event: Any) -> dict[Any, Any]:
    return dict(event.stats)


def read_trace(path: Path) -> Trace:
    """The events of an `.xplane.pb` file, through `jax.profiler.ProfileData`; files of other JAX versions are read, too."""
    from jax.profiler import ProfileData

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="builtin type", category=DeprecationWarning)  # dict(stats), on 0.12
        return read_planes(ProfileData.from_file(str(path)).planes)
