"""A profile as text: what was measured, what is derived from it, what is inferred, and the cross-checks beside it."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_audit.records import PolicyReport, PolicyTwin, ProfileRecord
from kernel_audit.statistics import median, needed_speedup

_NAMES_SHOWN = 6


def profile_lines(record: ProfileRecord) -> list[str]:
    """Everything of a profile in lines, without its samples."""
    return [
        *_heading(record),
        "",
        *_times(record),
        "",
        *_regions(record),
        "",
        *_mapped(record),
        "",
        *_opportunity(record),
        "",
        *_checks(record),
    ]


def _heading(record: ProfileRecord) -> Iterator[str]:
    where = (
        f"{record.devices} logical devices of a host" if record.logical else f"{record.devices} x {record.device_kind}"
    )
    sizes = ", ".join(f"{name}={size}" for name, size in sorted(record.dims.items()))
    yield f"{record.step} with {record.side} in place, on {where} ({record.platform}), {sizes}"
    if record.logical and record.side == "candidate":
        yield "  the candidate's kernels run in an interpreter here: what its region takes is no time of a kernel"
    for name, placed in sorted(record.placement.items()):
        kept = "stays on the devices" if name in record.state else "placed in every step"
        yield f"  {name}: {placed}; {kept}"


def _times(record: ProfileRecord) -> Iterator[str]:
    cold, warm = record.cold, record.warm
    yield (
        f"before the first step  trace {cold.trace_s:.3f} s, lower {cold.lower_s:.3f} s, compile {cold.compile_s:.3f} s; "
        "none of it is in a sample"
    )
    yield (
        f"a warm step            median {_ms(median(warm.wall_ns))} of {len(warm.wall_ns)}, {warm.synchronised} synchronised, "
        f"{warm.compile_events} compile events; the call had returned after {_ms(median(warm.dispatched_ns))}"
    )
    yield (
        f"the profiler's cost    x{record.overhead.ratio:.3f}, {len(record.overhead.traced_ns)} steps with it and "
        f"{len(record.overhead.untraced_ns)} without, in alternating blocks"
    )
    known = "" if record.traced.verified else "; this reader was never held against such a device: unverified"
    yield (
        f"the traced pass        {len(record.traced.wall_ns)} steps, {record.traced.events} operations, "
        f"read from {record.traced.reader} planes{known}"
    )


def _regions(record: ProfileRecord) -> Iterator[str]:
    causes = {each.region: f"{each.text} ({each.rests_on})" for each in record.causes}
    yield f"{'measured: region':26}{'share':>8}  {'95 % interval':>15}  {'a step':>10}   inferred: cause"
    steps = len(record.traced.wall_ns)
    for each in record.regions:
        interval = f"{each.share_low:.1%} to {each.share_high:.1%}"
        time = _ms(sum(each.time_ns) / steps)
        yield f"  {each.name:24}{each.share:>8.1%}  {interval:>15}  {time:>10}   {causes.get(each.name, '')}".rstrip()
    yield f"  {'sum':24}{sum(each.share for each in record.regions):>8.1%}"


def _mapped(record: ProfileRecord) -> Iterator[str]:
    told = ", ".join(f"{name} {share:.1%}" for name, share in record.mapping.items())
    yield f"operation time mapped by  {told}"
    inferred = [f"{each.name} -> {each.region}" for each in record.operations if each.by == "neighbours"]
    unmapped = [each.name for each in record.operations if each.by == "unmapped"]
    if inferred:
        yield f"  by neighbours: {_some(inferred)}"
    if unmapped:
        yield f"  unmapped: {_some(unmapped)}"
    if record.traced.unknown:
        yield f"  not in the program's text: {_some(record.traced.unknown)}"


def _opportunity(record: ProfileRecord) -> Iterator[str]:
    if record.logical:
        yield "opportunity, conditional: shares of logical devices decide nothing for a target"
    else:
        yield f"opportunity on {record.target or record.device_kind}"
    for each in record.opportunity:
        mark = "*" if each.region == record.candidate_region else " "
        most = f"{each.limit:.3f}" if each.limit is not None else "no limit"
        high = f"{each.limit_high:.3f}" if each.limit_high is not None else "no limit"
        if record.margin == 0:
            needed = ""
        elif each.needed is None:
            needed = f"; {record.margin:.0%} less time cannot come from it"
        else:
            needed = f"; {record.margin:.0%} less time needs it {each.needed:.2f} times as fast"
        if_ = "if the share there were" if record.logical else "with a share of"
        yield (
            f"{mark} {each.region}: {if_} {each.share:.1%}, {each.local_speedup:g} times as fast makes the step "
            f"{each.speedup:.3f}, at most {most} (at the interval's end {high}){needed}"
        )
    named = [each for each in record.opportunity if each.region == record.candidate_region]
    if not named:
        yield f"* {record.candidate_region}: the candidate's place takes nothing of this step"
    elif not record.logical and needed_speedup(named[0].share_high, record.margin) == float("inf"):
        rest = 1 - named[0].share
        yield f"  A faster kernel would leave {rest:.0%} of the step as it is: ordinary JAX, for this platform."


def _checks(record: ProfileRecord) -> Iterator[str]:
    staged = record.staged
    if staged is None:
        yield f"one executable a region: {record.staged_note or 'not made'}"
    else:
        parts = ", ".join(f"{each.region} {_ms(median(each.wall_ns))}" for each in staged.parts)
        yield f"one executable a region: {parts}; together x{staged.ratio:.2f} of the fused {_ms(median(staged.fused_ns))}"
    for each in record.ablations:
        yield (
            f"without {each.removed}: {_ms(each.difference_ns)} less ({_ms(each.low_ns)} to {_ms(each.high_ns)}, "
            f"{len(each.step_ns)} pairs); {each.note}"
        )


def policy_lines(report: PolicyReport) -> list[str]:
    """The twins of a step under checkpoint policies, one a line, then what they lost."""
    sizes = ", ".join(f"{name}={size}" for name, size in sorted(report.dims.items()))
    lines = [
        f"{report.step} with {report.side} in place, on {report.devices} devices ({report.platform}), {sizes}",
        f"{'policy':24}{'temporaries':>14}{'recomputed':>14}{'host transfer':>15}   results beside none",
    ]
    for each in report.twins:
        lines.append(_twin_line(each))
    for each in report.twins:
        lines += [f"{each.policy}: {name}" for name in each.lost_names]
    return lines


def _twin_line(each: PolicyTwin) -> str:
    temporary = f"{each.temporary_bytes:,} B" if each.temporary_bytes is not None else "not compiled"
    recomputed = f"{each.recomputed_flops:,} F"
    moved = f"{each.host_transfer_bytes:,} B"
    if each.within is None:
        outcome = each.reason or "not run"
    else:
        worst = max((value for value in each.errors.values() if value is not None), default=0.0)
        note = f"; {each.reason}" if each.reason else ""
        outcome = f"{'within' if each.within else 'BEYOND'} {each.bound:g}: {worst:.1e}{note}"
    return f"{each.policy:24}{temporary:>14}{recomputed:>14}{moved:>15}   {outcome}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return ", ".join(names[:_NAMES_SHOWN]) + more


def _ms(time_ns: float) -> str:
    return f"{time_ns / 1e6:.3f} ms"
