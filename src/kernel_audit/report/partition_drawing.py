"""How examples lie over devices, as text and as SVG: local shapes, what is on every device, and what is communicated."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from kernel_audit.records import PlacedArray, StepCollective, StepPartition, StepRun

_BOX, _GAP, _LEFT, _TOP, _ROW = 74, 8, 150, 78, 64  # CSS pixels
_HELD, _EMPTY, _SHARED, _LINE = "#3b6ea8", "#d9dde2", "#d98b2b", "#5b9a6f"


def partition_texts(partition: StepPartition, run: StepRun | None) -> list[str]:
    """The partition in lines: counts by device, each operand's local shape, each collective of the compiled step."""
    devices = range(partition.devices)
    axes = " x ".join(f"{axis}={size}" for axis, size in partition.mesh.items())
    width = max(2, *(len(str(each)) for each in partition.counts)) + 1
    lines = [
        f"{partition.name}: {partition.examples} examples over {axes}, {partition.rows} rows a device, {partition.order}",
        "  device    " + "".join(f"{each:{width}}" for each in devices),
        "  examples  " + "".join(f"{each:{width}}" for each in partition.counts),
        "  filled up " + "".join(f"{partition.rows - each:{width}}" for each in partition.counts),
    ]
    for each in run.operands if run is not None else []:
        shape = f"{each.dtype}{each.shape}"
        where = "on every device" if each.replicated and partition.devices > 1 else f"split, {_local(each)} a device"
        lines.append(f"  {each.name:9} {shape}: {where}{'' if each.as_asked else ' - NOT AS ASKED'}")
    for each in run.collectives if run is not None else []:
        lines.append(f"  {collective_text(each, partition.devices)}")
    return lines


def collective_text(each: StepCollective, devices: int) -> str:
    """ "all-reduce: 260 bytes put in by a device, 455 sent by the ring model; all 8 devices"."""
    trips = "" if each.trips == 1 else f", {each.trips if each.trips is not None else 'an unknown number of'} times"
    return (
        f"{each.kind}: {each.payload_bytes:,} bytes put in by a device, {each.wire_bytes:,} sent by the {each.model} "
        f"model{trips}; {_groups_text(each, devices)}"
    )


def _groups_text(each: StepCollective, devices: int) -> str:
    if len(each.groups) == 1 and len(each.groups[0]) == devices:
        return f"all {devices} devices" if devices > 1 else "one device"
    return " and ".join("{" + ",".join(map(str, group)) + "}" for group in each.groups) or "in pairs"


def _local(each: PlacedArray) -> str:
    shapes = {tuple(stop - start for start, stop in shard) for shard in each.shards}
    return " or ".join(str(list(shape)) for shape in sorted(shapes))


def partition_svg(partition: StepPartition, run: StepRun) -> bytes:
    """The same as a drawing: a row of boxes for each operand, a box a device, filled as far as it holds examples."""
    operands = run.operands
    width = _LEFT + partition.devices * (_BOX + _GAP) + 20
    height = _TOP + len(operands) * _ROW + len(run.collectives) * 44 + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        f"<title>{escape(_title(partition))}</title>",
        _text(10, 20, _title(partition), size=14),
        _text(
            10, 40, f"rows a device: {partition.rows}; blue: examples, grey: rows that fill up, orange: on every device"
        ),
        *_heads(partition),
    ]
    for index, each in enumerate(operands):
        parts += _operand(each, partition, _TOP + index * _ROW)
    for index, each in enumerate(run.collectives):
        parts += _collective(each, partition, _TOP + len(operands) * _ROW + index * 44)
    parts.append(_text(10, height - 10, "wire bytes: a ring model of no particular network", size=11))
    return ("\n".join(parts) + "\n</svg>\n").encode()


def _title(partition: StepPartition) -> str:
    axes = " x ".join(f"{axis}={size}" for axis, size in partition.mesh.items())
    return f"{partition.examples} examples over {axes}"


def _heads(partition: StepPartition) -> Iterator[str]:
    for device, count in enumerate(partition.counts):
        place = ",".join(str(each) for each in _coordinates(device, list(partition.mesh.values())))
        where = f"{device} ({place})" if len(partition.mesh) > 1 else str(device)
        yield _text(_left(device) + _BOX / 2, _TOP - 14, f"{where}: {count}", anchor="middle", size=11)


def _coordinates(device: int, sizes: list[int]) -> list[int]:
    return [device // math.prod(sizes[axis + 1 :]) % size for axis, size in enumerate(sizes)]


def _operand(each: PlacedArray, partition: StepPartition, top: float) -> Iterator[str]:
    yield _text(10, top + 20, f"{each.name}  {each.dtype}{each.shape}")
    yield _text(10, top + 36, "on every device" if each.replicated else f"local {_local(each)}", size=11)
    for device, count in enumerate(partition.counts):
        x, size = _left(device), 42
        if each.replicated and partition.devices > 1:
            yield _rect(x, top, _BOX, size, _SHARED)
            continue
        held = size * count / partition.rows
        yield _rect(x, top, _BOX, size, _EMPTY)
        if held:
            yield _rect(x, top, _BOX, held, _HELD)
    if not each.as_asked:
        yield _text(10, top + 50, "not as asked", size=11)


def _collective(each: StepCollective, partition: StepPartition, top: float) -> Iterator[str]:
    yield _text(10, top + 14, each.kind)
    for group in each.groups:
        y = top + 8 + 5 * (each.groups.index(group) % 3)
        ends = [_left(device) + _BOX / 2 for device in group if device < partition.devices]
        if ends:
            yield f'<line x1="{min(ends)}" y1="{y}" x2="{max(ends)}" y2="{y}" stroke="{_LINE}" stroke-width="3"/>'
        for x in ends:
            yield f'<circle cx="{x}" cy="{y}" r="4" fill="{_LINE}"/>'
    yield _text(_LEFT, top + 34, collective_text(each, partition.devices).partition(": ")[2], size=11)


def _left(device: int) -> float:
    return _LEFT + device * (_BOX + _GAP)


def _rect(x: float, y: float, width: float, height: float, fill: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height:g}" fill="{fill}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
