"""From passes, events and regions to the parts of a profile's record. What is measured, what is derived, and what is
inferred.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from kernel_audit.profile.attribution import Attribution
from kernel_audit.profile.planes import Trace
from kernel_audit.profile.sweep import Swept
from kernel_audit.records import (
    MEANS,
    STEP_REGIONS,
    UNMAPPED,
    Cause,
    OperationTime,
    Opportunity,
    RegionTime,
)
from kernel_audit.records.profile import COMMUNICATION, DISPATCH, LOCAL, RESHARDING, STAGING
from kernel_audit.statistics import conditional_speedup, needed_speedup, share_interval, speedup_limit

LOCAL_SPEEDUP = 2.0  # the example at which the conditional speed-up is shown
_NOTABLE = 0.1  # of the step: below this a region asks for no explanation


def regions_of(swept: Sequence[Swept]) -> list[RegionTime]:
    """Every region with its time in each step; regions of the common list come first, "unmapped" last. They sum to the wall."""
    named = {name for each in swept for name in each.time_ns}
    own = sorted(named - set(STEP_REGIONS) - {UNMAPPED})
    walls = [each.wall_ns for each in swept]
    found = []
    for name in (*STEP_REGIONS, *own, UNMAPPED):
        times = [each.time_ns.get(name, 0.0) for each in swept]
        share = share_interval(times, walls)
        waiting = sum(each.waiting_ns.get(name, 0.0) for each in swept)
        found.append(
            RegionTime(
                name=name,
                time_ns=times,
                share=share.value,
                share_low=share.low,
                share_high=share.high,
                waiting_ns=waiting,
            )
        )
    return found


def operations_of(trace: Trace, attribution: Attribution) -> list[OperationTime]:
    """Every instruction that was seen, the longest first; its time is summed over devices and steps, waits included."""
    events: Counter[str] = Counter()
    times: dict[str, float] = defaultdict(float)
    opcodes = {}
    for each in trace.operations:
        events[each.name] += 1
        times[each.name] += each.end_ns - each.start_ns
        opcodes[each.name] = each.opcode
    found = []
    for name in sorted(times, key=lambda name: (-times[name], name)):
        place = attribution.place(name, opcodes[name])
        found.append(
            OperationTime(
                name=name,
                opcode=place.opcode,
                region=place.region,
                by=place.by,
                events=events[name],
                time_ns=times[name],
            )
        )
    return found


def mapping_of(operations: Sequence[OperationTime]) -> dict[str, float]:
    """The share of all operation time by each of MEANS."""
    times = dict.fromkeys(MEANS, 0.0)
    for each in operations:
        times[each.by] += each.time_ns
    whole = sum(times.values())
    return {name: time / whole if whole else 0.0 for name, time in times.items()}


def opportunities(regions: Sequence[RegionTime], margin: float, candidates: str = LOCAL) -> list[Opportunity]:
    """What the step could gain from each region that takes something, the largest first; from the candidate's in any case."""
    found = []
    for each in sorted(regions, key=lambda one: -one.share):
        if each.share <= 0 and each.name != candidates:
            continue
        limit, high = speedup_limit(each.share), speedup_limit(each.share_high)
        needed = needed_speedup(each.share, margin)
        found.append(
            Opportunity(
                region=each.name,
                share=each.share,
                share_low=each.share_low,
                share_high=each.share_high,
                local_speedup=LOCAL_SPEEDUP,
                speedup=conditional_speedup(each.share, LOCAL_SPEEDUP),
                limit=_finite(limit),
                limit_high=_finite(high),
                needed=_finite(needed),
                margin=margin,
            )
        )
    return found


def causes_of(regions: Sequence[RegionTime], operations: Sequence[OperationTime], staged_bytes: int) -> list[Cause]:
    """Why the notable regions may take what they take. Inferred from names and sizes; the trace measures no cause."""
    found = []
    for each in regions:
        if each.share < _NOTABLE:
            continue
        longest = next((one for one in operations if one.region == each.name), None)
        rests_on = f"{longest.name} ({longest.opcode})" if longest else "no operation"
        waiting = each.waiting_ns / sum(each.time_ns)
        if each.name == RESHARDING:
            text = "operands arrive in another layout than the step works in, and the partitioner moves them"
        elif each.name == STAGING:
            text, rests_on = "operands are placed from the host in every step", f"{staged_bytes} bytes a step"
        elif each.name == COMMUNICATION and waiting > 0.5:
            text = "devices come to the collective at different times: more waiting than moving"
            rests_on = f"{waiting:.0%} of it while every device only waited"
        elif each.name == COMMUNICATION:
            text = "the collective's own work: copies and sums between devices"
        elif each.name == DISPATCH:
            text, rests_on = "the step is short beside the cost of calling it", "no operation was under way"
        elif each.name == LOCAL:
            text = "arithmetic or memory traffic; the trace does not tell which"
        else:
            text = "its longest operation"
        found.append(Cause(region=each.name, text=text, rests_on=rests_on))
    return found


def _finite(value: float) -> float | None:
    return value if value != float("inf") else None
