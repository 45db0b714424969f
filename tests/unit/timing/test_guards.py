"""Guards on readings that are given to them, and clocks on those of this machine."""

from __future__ import annotations

import itertools

import pytest

from kernel_audit.timing import Noise, Stage, cpu_clock, host_clock, plan_session, simulate_session
from kernel_audit.timing.clock import MeasuredClock
from kernel_audit.timing.guards import BusyMachine, Throttling, guards_here, machine_busy_s


class Readings:
    """A busy machine on paper: two cores, of which `others` are taken by somebody else."""

    def __init__(self) -> None:
        self.time = self.busy = self.own = 0.0

    def pass_time(self, seconds: float, others: float) -> None:
        self.time += seconds
        self.own += seconds
        self.busy += seconds * (1 + others)


def busy_guard(readings: Readings) -> BusyMachine:
    guard = BusyMachine(
        0.4,
        window_s=0.2,
        busy_s=lambda: readings.busy,
        own_s=lambda: readings.own,
        now=lambda: readings.time,
        cores=2,
    )
    guard.start()
    return guard


@pytest.mark.parametrize("others, reason", [(0.0, ""), (0.7, ""), (0.9, "busy-machine")])
def test_a_busy_window_voids_all_its_pairs(others: float, reason: str):
    readings = Readings()
    guard = busy_guard(readings)
    for _ in range(3):
        readings.pass_time(0.05, others)
        assert guard.look() == ("", 0)
    readings.pass_time(0.1, others)
    assert guard.look() == ((reason, 3) if reason else ("", 0))
    readings.pass_time(0.25, 0.0)
    assert guard.look() == ("", 0)


def test_throttling_voids_the_pair_in_which_the_count_rose():
    counts = iter([3, 3, 4, 4])
    guard = Throttling(lambda: next(counts))
    guard.start()
    assert [guard.look() for _ in range(3)] == [("", 0), ("throttled", 0), ("", 0)]


def test_the_readings_of_this_machine():
    if BusyMachine.readable():
        assert machine_busy_s() > 0
    guards, notes = guards_here()
    assert len(guards) + len(notes) == 2


class Always:
    """Voids every second pair, and the one before it."""

    def start(self) -> None:
        self._count = itertools.count()

    def look(self) -> tuple[str, int]:
        return ("throttled", 1) if next(self._count) % 4 == 3 else ("", 0)


def test_the_runner_marks_earlier_pairs_of_a_window_in_their_own_columns():
    plan = plan_session(seed=1, input_sets=1, pairs=80, processes=8)
    session = simulate_session(Noise("n"), plan, stage=Stage(guards=lambda world: [Always()]))
    for process in session.processes:
        columns = (process.comparison, process.control, process.direction)
        marked = sum(bool(void) for each in columns for void in each.voided)
        assert marked == sum(len(each.voided) for each in columns) // 4 * 2


def test_clocks_of_this_machine_say_how_good_they_are():
    for clock in (host_clock(), cpu_clock()):
        record = clock.record()
        assert 0 < record.step_s < 0.05
        assert 0 < record.overhead_s < 0.01
        assert clock.now() <= clock.now()


def test_the_step_of_a_coarse_clock_is_found():
    """It stands still for many readings, then moves by 50 microseconds."""
    ticks = itertools.count()
    assert MeasuredClock("coarse", "host", lambda: next(ticks) // 7 * 50_000).record().step_s == pytest.approx(5e-5)
    ticks = itertools.count()
    assert MeasuredClock("coarser", "host", lambda: next(ticks) // 9000 * 50_000).record().step_s == pytest.approx(5e-5)
