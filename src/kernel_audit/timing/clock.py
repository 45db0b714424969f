"""Clocks with what they can tell apart and what reading them costs, measured before they are used."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Protocol

from kernel_audit.records import ClockRecord

_READINGS = 2001


class Clock(Protocol):
    """A reading in seconds, and the record of how good it is."""

    def now(self) -> float:
        """Seconds since some fixed moment; never less than before."""
        ...

    def record(self) -> ClockRecord:
        """Step and overhead, as they were measured or set."""
        ...


class MeasuredClock:
    """A clock of this machine that counts nanoseconds; step and overhead come from readings in a row."""

    def __init__(self, name: str, kind: str, read_ns: Callable[[], int]) -> None:
        self._read_ns = read_ns
        self._record = ClockRecord(
            name=name, kind=kind, step_s=_step_ns(read_ns) / 1e9, overhead_s=_overhead_ns(read_ns) / 1e9
        )

    def now(self) -> float:
        """Seconds."""
        return self._read_ns() / 1e9

    def record(self) -> ClockRecord:
        """As measured when the clock was made."""
        return self._record


def host_clock() -> MeasuredClock:
    """The monotonic wall clock of the host."""
    return MeasuredClock("perf_counter_ns", "host", _since_start(time.perf_counter_ns))


def cpu_clock() -> MeasuredClock:
    """CPU time that all threads of this process have used: what a sleeping program does not spend."""
    return MeasuredClock("process_time_ns", "process-cpu", time.process_time_ns)


def _since_start(read_ns: Callable[[], int]) -> Callable[[], int]:
    """Counted from now, so that a float64 of seconds keeps every nanosecond."""
    start = read_ns()
    return lambda: read_ns() - start


def _step_ns(read_ns: Callable[[], int]) -> float:
    """The smallest difference above 0 between readings in a row."""
    steps = set()
    before = read_ns()
    for _ in range(_READINGS):
        after = read_ns()
        if after > before:
            steps.add(after - before)
        before = after
    if not steps:  # the clock stood still: wait for its next step
        while (after := read_ns()) == before:
            pass
        return float(after - before)
    # Differences in a row are multiples of the step plus the cost of a reading; their spacing is the step.
    ordered = sorted(steps)
    gaps = [b - a for a, b in itertools.pairwise(ordered)]
    return float(min([ordered[0], *gaps]))


def _overhead_ns(read_ns: Callable[[], int]) -> float:
    started = time.perf_counter_ns()
    for _ in range(_READINGS):
        read_ns()
    return (time.perf_counter_ns() - started) / _READINGS
