"""The regions of a step sum to its wall, whatever overlaps; waiting is told from working."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from traces import HLO

from kernel_audit.profile import Attribution, Operation, Trace, sweep

ATTRIBUTION = Attribution(HLO)
NAMES = ("pad", "moved", "dot", "loop", "inner", "asked", "unscoped", "nowhere")


def one(trace: Trace) -> dict[str, float]:
    (swept,) = sweep(trace, ATTRIBUTION)
    assert sum(swept.time_ns.values()) == pytest.approx(swept.wall_ns, rel=1e-6)
    return swept.time_ns


def ran(name: str, start: float, end: float, device: int = 0, **more: object) -> Operation:
    return Operation(device, name, "jit_step", start, end, f"thread-{device}", **more)  # type: ignore[arg-type]


def test_what_works_at_once_shares_the_instant() -> None:
    found = one(Trace(steps=[(0, 0, 100)], operations=[ran("pad", 10, 50), ran("dot", 30, 50, 1)]))
    assert found == {"padding-and-cropping": 30, "local-arithmetic": 10, "dispatch": 60}


def test_a_collective_waits_for_its_last_device_and_then_works() -> None:
    operations = [ran("asked", 10, 90), ran("dot", 10, 60, 1), ran("asked", 60, 90, 1)]
    trace = Trace(steps=[(0, 0, 100)], operations=operations)
    assert one(trace) == {"local-arithmetic": 50, "communication": 30, "dispatch": 20}


def test_where_all_only_wait_the_wait_is_the_collectives() -> None:
    operations = [ran("asked", 10, 90), ran("asked", 60, 90, 1)]
    (swept,) = sweep(Trace(steps=[(0, 0, 100)], operations=operations), ATTRIBUTION)
    assert swept.time_ns == {"dispatch": 20, "communication": 80}
    assert swept.waiting_ns == {"communication": 50}


def test_a_loop_has_what_is_left_between_its_operations() -> None:
    operations = [ran("loop", 0, 100), ran("inner", 10, 40), ran("pad", 20, 40, 1)]
    found = one(Trace(steps=[(0, 0, 100)], operations=operations))
    assert found == {"local-arithmetic": 90, "padding-and-cropping": 10}


def test_a_late_mark_holds_until_a_user_has_started() -> None:
    operations = [ran("dot", 10, 12, late_end_ns=95.0), ran("loop", 40, 50)]
    assert one(Trace(steps=[(0, 0, 100)], operations=operations)) == {"dispatch": 60, "local-arithmetic": 40}
    assert one(Trace(steps=[(0, 0, 100)], operations=operations[:1])) == {"dispatch": 15, "local-arithmetic": 85}


def test_a_background_transfer_counts_where_nothing_works() -> None:
    operations = [ran("moved", 0, 100, background=True), ran("dot", 20, 50)]
    assert one(Trace(steps=[(0, 0, 100)], operations=operations)) == {"resharding": 70, "local-arithmetic": 30}


def test_staging_is_the_hosts() -> None:
    trace = Trace(steps=[(0, 0, 100)], operations=[], host=[("input-staging", 5, 45), ("execute", 45, 100)])
    assert one(trace) == {"input-staging": 40, "dispatch": 60}


SPANS = st.tuples(st.sampled_from(NAMES), st.floats(0, 900), st.floats(0, 400), st.integers(0, 3), st.booleans())


@given(st.lists(SPANS, max_size=40))
def test_any_operations_sum_to_the_walls(spans: list[tuple[str, float, float, int, bool]]) -> None:
    operations = [
        ran(name, start, start + length, device, background=aside) for name, start, length, device, aside in spans
    ]
    trace = Trace(steps=[(0, 0, 400), (1, 450, 1000)], operations=operations, host=[("input-staging", 0, 30)])
    for each in sweep(trace, ATTRIBUTION):
        assert sum(each.time_ns.values()) == pytest.approx(each.wall_ns, rel=1e-6)
        assert all(time >= 0 for time in each.time_ns.values())
        assert all(each.waiting_ns[name] <= each.time_ns[name] + 1e-6 for name in each.waiting_ns)
