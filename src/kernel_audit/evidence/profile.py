"""What must hold of a profile: regions that sum to the wall, statistics that follow from the samples, traces that are named."""

from __future__ import annotations

import math
from collections.abc import Iterator

from kernel_audit.evidence import layout
from kernel_audit.evidence.fault import INCONSISTENT, MISSING, Fault
from kernel_audit.evidence.frozen import Evidence
from kernel_audit.evidence.manifest import Manifest
from kernel_audit.records import MEANS, Opportunity, ProfileRecord, RegionTime
from kernel_audit.statistics import (
    conditional_speedup,
    difference_interval,
    median,
    needed_speedup,
    share_interval,
    speedup_limit,
)

WALL_TOLERANCE = 1e-6  # of a step's wall: the sum of its regions
TOLERANCE = 1e-9  # of a statistic that is computed again from the same samples


def profile_faults(evidence: Evidence) -> Iterator[Fault]:
    """Contradictions inside the profile, and with the audit."""
    record = evidence.profile
    if record is None:
        return
    for text in (
        *_place_faults(evidence, record),
        *_sample_faults(record),
        *_sum_faults(record),
        *_statistic_faults(record),
        *_opportunity_faults(evidence, record),
    ):
        yield Fault(file=layout.PROFILE, kind=INCONSISTENT, text=text)


def trace_faults(evidence: Evidence, manifest: Manifest) -> Iterator[Fault]:
    """Trace files that the profile names and the bundle has not, or has otherwise, and the reverse."""
    prefix = layout.PROFILES + "/"
    held = {
        name.removeprefix(prefix): digest
        for name, digest in manifest.digests().items()
        if name.startswith(prefix) and name != layout.PROFILE
    }
    named = {each.name: each.digest for each in evidence.profile.traced.files} if evidence.profile else {}
    for name in sorted(held.keys() | named.keys()):
        if held.get(name) != named.get(name):
            kind = MISSING if name not in held else INCONSISTENT
            yield Fault(file=prefix + name, kind=kind, text="not the file that profile.json names")


def _place_faults(evidence: Evidence, record: ProfileRecord) -> Iterator[str]:
    sides = {"candidate", *(each.name for each in evidence.frozen.audit.baselines)}
    if record.side not in sides:
        yield f"of the unknown side {record.side!r}"
    if record.logical and record.target is not None:
        yield f"taken on logical devices of a host, and claims the target {record.target!r}"
    if (record.platform == "cpu") != record.logical:
        yield f"platform {record.platform!r}, logical: {record.logical}"
    if record.margin != evidence.frozen.audit.worth.margin:
        yield f"for a worth of {record.margin!r}, and the audit asks for {evidence.frozen.audit.worth.margin!r}"


def _sample_faults(record: ProfileRecord) -> Iterator[str]:
    if len(record.warm.wall_ns) != len(record.warm.dispatched_ns):
        yield f"{len(record.warm.wall_ns)} walls and {len(record.warm.dispatched_ns)} dispatch times"
    for name, samples in (
        ("warm", record.warm.wall_ns),
        ("untraced", record.overhead.untraced_ns),
        ("traced", record.overhead.traced_ns),
        ("traced pass", record.traced.wall_ns),
    ):
        if not samples or min(samples) <= 0:
            yield f"{name} samples: none, or not above 0"


def _sum_faults(record: ProfileRecord) -> Iterator[str]:
    walls = record.traced.wall_ns
    if any(len(each.time_ns) != len(walls) for each in record.regions):
        yield "a region without a time in each traced step"
        return
    for step, wall in enumerate(walls):
        total = math.fsum(each.time_ns[step] for each in record.regions)
        if abs(total - wall) > WALL_TOLERANCE * wall:
            yield f"the regions of step {step} sum to {total!r} ns, and its wall is {wall!r} ns"
    times = dict.fromkeys(MEANS, 0.0)
    for each in record.operations:
        if each.by not in times:
            yield f"operation {each.name!r} was mapped by the unknown means {each.by!r}"
            return
        times[each.by] += each.time_ns
    whole = math.fsum(times.values())
    for name, time in times.items():
        if whole and not _same(record.mapping.get(name), time / whole):
            yield f"mapping by {name} is {record.mapping.get(name)!r}, and its operations give {time / whole!r}"


def _statistic_faults(record: ProfileRecord) -> Iterator[str]:
    walls = record.traced.wall_ns
    for each in record.regions:
        if len(each.time_ns) == len(walls) and walls and min(walls) > 0:
            again = share_interval(each.time_ns, walls)
            stated = (each.share, each.share_low, each.share_high)
            yield from _differs(f"the share of {each.name}", stated, (again.value, again.low, again.high))
    samples = record.overhead
    if samples.traced_ns and samples.untraced_ns:
        yield from _differs("overhead", (samples.ratio,), (median(samples.traced_ns) / median(samples.untraced_ns),))
    for each in record.ablations:
        if each.step_ns and len(each.step_ns) == len(each.twin_ns):
            again = difference_interval(each.step_ns, each.twin_ns)
            stated = (each.difference_ns, each.low_ns, each.high_ns)
            yield from _differs(f"the step without {each.removed}", stated, (again.value, again.low, again.high))
    staged = record.staged
    if staged is not None and staged.fused_ns and all(each.wall_ns for each in staged.parts):
        ratio = math.fsum(median(each.wall_ns) for each in staged.parts) / median(staged.fused_ns)
        yield from _differs("the staged total", (staged.ratio,), (ratio,))


def _opportunity_faults(evidence: Evidence, record: ProfileRecord) -> Iterator[str]:
    regions = {each.name: each for each in record.regions}
    for each in record.opportunity:
        region = regions.get(each.region)
        if region is None:
            yield f"opportunity of the unknown region {each.region!r}"
            continue
        yield from _differs(f"the opportunity of {each.region}", _stated(each), _derived(each, region))


def _stated(each: Opportunity) -> tuple[float | None, ...]:
    return (
        each.share,
        each.share_low,
        each.share_high,
        each.speedup,
        each.limit,
        each.limit_high,
        each.needed,
    )


def _derived(each: Opportunity, region: RegionTime) -> tuple[float | None, ...]:
    return (
        region.share,
        region.share_low,
        region.share_high,
        conditional_speedup(region.share, each.local_speedup),
        _finite(speedup_limit(region.share)),
        _finite(speedup_limit(region.share_high)),
        _finite(needed_speedup(region.share, each.margin)),
    )


def _differs(what: str, stated: tuple[float | None, ...], again: tuple[float | None, ...]) -> Iterator[str]:
    if not all(_same(left, right) for left, right in zip(stated, again, strict=True)):
        yield f"{what} is {list(stated)}, and its samples give {list(again)}"


def _same(left: float | None, right: float | None) -> bool:
    if left is None or right is None:
        return left is right
    return math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
