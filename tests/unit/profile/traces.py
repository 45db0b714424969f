"""Traces made by hand: planes as plain objects, and the same as the bytes of an `.xplane.pb`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kernel_audit.records.protobuf import append_field

HLO = """HloModule jit_step, is_scheduled=true

FileNames
1 "/home/somebody/step.py"

FileLocations
1 {file_name_id=1 function_name_id=1 line=11}

%body (p: f32[8]) -> f32[8] {
  %p = f32[8]{0} parameter(0)
  ROOT %inner = f32[8]{0} add(%p, %p), metadata={op_name="jit(step)/region.local-arithmetic/while/body/add"}
}

%held (a: f32[8]) -> f32[8] {
  %a = f32[8]{0} parameter(0)
  ROOT %held.1 = f32[8]{0} multiply(%a, %a), metadata={op_name="jit(step)/region.update/mul"}
}

ENTRY %main (x: f32[8], y: f32[8]) -> f32[8] {
  %x = f32[8]{0} parameter(0)
  %y = f32[8]{0} parameter(1)
  %pad = f32[8]{0} fusion(%x), kind=kLoop, calls=%held, metadata={PAD source_file="/home/somebody/step.py" source_line=3}
  %moved = (f32[4]{0}, /*index=1*/f32[4]{0}) all-to-all(%pad, %y), replica_groups={{0,1}}, metadata={PAD}
  %part = f32[4]{0} get-tuple-element(%moved), index=0
  %dot = f32[8]{0} dot(%part, %y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  %loop = f32[8]{0} while(%dot), condition=%cond, body=%body, metadata={op_name="jit(step)/region.local-arithmetic/while"}
  %asked = f32[8]{0} all-reduce(%loop), replica_groups={{0,1}}, metadata={op_name="jit(step)/shard_map/psum"}
  %unscoped = f32[8]{0} fusion(%asked), kind=kLoop, calls=%held
  ROOT %lone = f32[8]{0} copy(%unscoped), backend_config={"b":1,"a":2}
}
""".replace("PAD", 'op_name="jit(step)/region.padding-and-cropping/pad"')


@dataclass
class Event:
    name: str
    start_ns: float
    end_ns: float
    stats: list[tuple[str, Any]] = field(default_factory=list)


@dataclass
class Line:
    name: str
    events: list[Event]


@dataclass
class Plane:
    name: str
    lines: list[Line]


def operation(name: str, start: float, end: float, device: int = 0, **stats: Any) -> Event:
    """One executed instruction as a CPU trace has it."""
    told = {"hlo_op": name, "hlo_module": "jit_step", "run_id": 1, "device_ordinal": device, **stats}
    return Event(name, start, end, list(told.items()))


def step(number: int, start: float, end: float) -> Event:
    return Event("step", start, end, [("step_num", number), ("_r", 1)])


def xspace(planes: list[Plane], host: str = "") -> bytes:
    """The bytes of an XSpace with these planes, by the field numbers of xplane.proto."""
    out = bytearray()
    for plane in planes:
        append_field(out, 1, 2, _plane(plane))
    if host:
        append_field(out, 4, 2, host.encode())
    return bytes(out)


def _plane(plane: Plane) -> bytes:
    names: dict[str, int] = {}
    stats: dict[str, int] = {}
    lines = bytearray()
    for line in plane.lines:
        append_field(lines, 3, 2, _line(line, names, stats))
    out = bytearray()
    append_field(out, 2, 2, plane.name.encode())
    out += lines
    for field_number, table in ((4, names), (5, stats)):
        for text, number in table.items():
            append_field(out, field_number, 2, _entry(text, number))
    return bytes(out)


def _line(line: Line, names: dict[str, int], stats: dict[str, int]) -> bytes:
    out = bytearray()
    append_field(out, 2, 2, line.name.encode())
    for event in line.events:
        data = bytearray()
        append_field(data, 1, 0, names.setdefault(event.name, len(names) + 1))
        append_field(data, 2, 0, round(event.start_ns * 1000))
        append_field(data, 3, 0, round((event.end_ns - event.start_ns) * 1000))
        for key, value in event.stats:
            stat = bytearray()
            append_field(stat, 1, 0, stats.setdefault(key, len(stats) + 1))
            if isinstance(value, str):
                append_field(stat, 5, 2, value.encode())
            else:
                append_field(stat, 4, 0, value)
            append_field(data, 4, 2, bytes(stat))
        append_field(out, 4, 2, bytes(data))
    return bytes(out)


def _entry(text: str, number: int) -> bytes:
    value = bytearray()
    append_field(value, 1, 0, number)
    append_field(value, 2, 2, text.encode())
    out = bytearray()
    append_field(out, 1, 0, number)
    append_field(out, 2, 2, bytes(value))
    return bytes(out)
