"""The wall of each step, divided among regions by a sweep over all devices: the parts of a step sum to its wall.

An instant belongs, in equal parts, to the operations that are working on any device. It belongs to an operation that only
waits (a collective before its last device has come, or a transfer in the background) where nothing works, and to dispatch where
nothing is under way at all. Means over devices would not do: logical devices share cores, so that one's wait is another's work.

That a collective waits until its last device has come, and works from then on, is how the CPU's was seen to run: its copies lie
inside events that are called waits, so those names tell nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from kernel_audit.profile.attribution import CONTAINERS, Attribution
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
    containers = _containers(trace, attribution)
    ordered = sorted(trace.operations, key=lambda each: each.start_ns)
    starts = [each.start_ns for each in ordered]
    found = []
    for _, start, end in trace.steps:
        points: list[_Point] = []
        for region, first, last in trace.host:
            if region == STAGING and first < end and last > start:
                _add(points, max(first, start), min(last, end), region, True)
        inside = ordered[bisect_left(starts, start) : bisect_left(starts, end)]
        complete = _complete(inside, attribution)
        ends = _true_ends(inside, attribution)
        for index, each in enumerate(inside):
            region = attribution.place(each.name, each.opcode).region
            last = min(ends.get(index, each.end_ns), end)
            if each.background or each.name in containers:
                _add(points, each.start_ns, last, region, False)
                continue
            works = min(max(complete.get(index, each.start_ns), each.start_ns), last)
            _add(points, each.start_ns, works, region, False)
            _add(points, works, last, region, True)
        found.append(_divided(points, start, end))
    return found


def _containers(trace: Trace, attribution: Attribution) -> set[str]:
    """Loops and calls whose inner operations are in the trace as well: their own time is what lies between those."""
    names = {each.name for each in trace.operations}
    return {each for each in names if attribution.opcode(each) in CONTAINERS and attribution.inside(each) & names}


def _complete(operations: Sequence[Operation], attribution: Attribution) -> dict[int, float]:
    """For each collective of a step, by its place in `operations`: when the last device had come to it.

    The k-th execution of an instruction on one device belongs to the k-th on the others: the mesh of a profile has one axis, so
    that a collective is between all devices.
    """
    executed: Counter[tuple[str, int]] = Counter()
    instances: dict[tuple[str, int], list[int]] = defaultdict(list)
    for index, each in enumerate(operations):
        if attribution.collective(each.name):
            occurrence = executed[each.name, each.device]
            executed[each.name, each.device] += 1
            instances[each.name, occurrence].append(index)
    found = {}
    for members in instances.values():
        arrival = max(operations[index].start_ns for index in members)
        found.update(dict.fromkeys(members, arrival))
    return found


def _true_ends(operations: Sequence[Operation], attribution: Attribution) -> dict[int, float]:
    """The ends of operations of a step that another thread finished, by their places: the late mark, or before it the start of
    the first operation on the same device that uses the result."""
    started: dict[tuple[int, str], list[float]] = defaultdict(list)
    for each in operations:
        started[each.device, each.name].append(each.start_ns)
    found = {}
    for index, each in enumerate(operations):
        if each.late_end_ns:
            after = [
                moment
                for user in attribution.users(each.name)
                for moment in started.get((each.device, user), [])
                if moment >= each.end_ns
            ]
            found[index] = min([each.late_end_ns, *after])
    return found


def _add(points: list[_Point], start: float, end: float, region: str, working: bool) -> None:
    if end > start:
        points.append((start, 1, region, working))
        points.append((end, -1, region, working))


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
