"""The wall of each step, divided among regions by a sweep over all devices: the parts of a step sum to its wall.

An instant belongs, in equal parts, to the operations that are working on any device. It belongs to an operation that only waits
(blocked in a collective, or a transfer in the background) where nothing works, and to dispatch where nothing is under way at all.
Means over devices would not do: logical devices share cores, so that one's wait is another's work.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from kernel_audit.profile.attribution import COLLECTIVES, CONTAINERS, Attribution
from kernel_audit.profile.planes import Operation, Trace
from kernel_audit.records.profile import DISPATCH, STAGING


@dataclass
class Swept:
    """One step: its wall, the time of each region, and of that the part in which everything under way only waited. In ns."""

    wall_ns: float
    time_ns: dict[str, float] = field(default_factory=dict)
    waiting_ns: dict[str, float] = field(default_factory=dict)


# (time, +1 or -1, region, working)
_Point = tuple[float, int, str, bool]


def sweep(trace: Trace, attribution: Attribution) -> list[Swept]:
    """The division of every step of a trace, in order."""
    waits: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for thread, start, end in trace.waits:
        waits[thread].append((start, end))
    for each in waits.values():
        each.sort()
    containers = _containers(trace, attribution)
    ordered = sorted(trace.operations, key=lambda each: each.start_ns)
    starts = [each.start_ns for each in ordered]
    found = []
    for _, start, end in trace.steps:
        points: list[_Point] = []
        for region, first, last in trace.host:
            if region == STAGING and first < end and last > start:
                _add(points, max(first, start), min(last, end), region, True)
        for operation in ordered[bisect_left(starts, start) : bisect_left(starts, end)]:
            _add_operation(points, operation, attribution, waits, end, operation.name in containers)
        found.append(_divided(points, start, end))
    return found


def _containers(trace: Trace, attribution: Attribution) -> set[str]:
    """Loops and calls whose inner operations are in the trace as well: their own time is what lies between those."""
    names = {each.name for each in trace.operations}
    return {each for each in names if attribution.opcode(each) in CONTAINERS and attribution.inside(each) & names}


def _add(points: list[_Point], start: float, end: float, region: str, working: bool) -> None:
    if end > start:
        points.append((start, 1, region, working))
        points.append((end, -1, region, working))


def _add_operation(
    points: list[_Point],
    operation: Operation,
    attribution: Attribution,
    waits: dict[str, list[tuple[float, float]]],
    end: float,
    container: bool,
) -> None:
    region = attribution.place(operation.name, operation.opcode).region
    last = min(operation.end_ns, end)
    if operation.background or container:
        _add(points, operation.start_ns, last, region, False)
        return
    position = operation.start_ns
    if attribution.opcode(operation.name).removesuffix("-start").removesuffix("-done") in COLLECTIVES:
        blocked = waits.get(operation.thread, [])
        for index in range(bisect_left(blocked, (operation.start_ns, 0.0)), len(blocked)):
            first, until = blocked[index]
            if first >= last:
                break
            if until <= last:
                _add(points, position, first, region, True)
                _add(points, max(first, position), until, region, False)
                position = max(position, until)
    _add(points, position, last, region, True)


def _divided(points: list[_Point], start: float, end: float) -> Swept:
    points.sort(key=lambda each: each[0])
    working: Counter[str] = Counter()
    waiting: Counter[str] = Counter()
    time: dict[str, float] = defaultdict(float)
    idle: dict[str, float] = defaultdict(float)
    previous = start
    for moment, change, region, works in [*points, (end, 0, "", True)]:
        if moment > previous:
            _give(moment - previous, working, waiting, time, idle)
            previous = moment
        if change:
            table = working if works else waiting
            table[region] += change
            if not table[region]:
                del table[region]
    return Swept(end - start, dict(time), dict(idle))


def _give(
    length: float, working: Counter[str], waiting: Counter[str], time: dict[str, float], idle: dict[str, float]
) -> None:
    under_way = working or waiting
    if not under_way:
        time[DISPATCH] += length
        return
    whole = sum(under_way.values())
    for region, count in under_way.items():
        time[region] += length * count / whole
        if not working:
            idle[region] += length * count / whole
