"""What makes a pair worthless, as far as this machine lets it be seen. Voided pairs stay in the record, counted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

_STAT = Path("/proc/stat")
_THROTTLE = "cpu[0-9]*/thermal_throttle/core_throttle_count"
BUSY_SHARE = 0.5
WINDOW_S = 0.2


class BusyMachine:
    """Voids the pairs of a window in which others used more than `limit` of all cores.

    The system counts in hundredths of a second, so it is read once a window: the pairs since the last reading share what is
    found. `readable()` says whether this system tells at all.
    """

    def __init__(
        self,
        limit: float = BUSY_SHARE,
        *,
        window_s: float = WINDOW_S,
        busy_s: Callable[[], float] | None = None,
        own_s: Callable[[], float] = time.process_time,
        now: Callable[[], float] = time.monotonic,
        cores: int | None = None,
    ) -> None:
        self._limit = limit
        self._window_s = window_s
        self._busy_s = busy_s or machine_busy_s
        self._own_s = own_s
        self._now = now
        self._cores = cores or os.cpu_count() or 1
        self._pairs = 0

    @staticmethod
    def readable() -> bool:
        """Whether the system counts the busy time of its cores."""
        return _STAT.exists()

    def start(self) -> None:
        """A new window."""
        self._pairs = 0
        self._begun, self._busy, self._own = self._now(), self._busy_s(), self._own_s()

    def look(self) -> tuple[str, int]:
        """("busy-machine", how many earlier pairs too) at the end of a window that was busy."""
        now = self._now()
        elapsed = now - self._begun
        if elapsed < self._window_s:
            self._pairs += 1
            return "", 0
        others = (self._busy_s() - self._busy) - (self._own_s() - self._own)
        pairs = self._pairs
        self.start()
        return ("busy-machine", pairs) if others > self._limit * self._cores * elapsed else ("", 0)


class Throttling:
    """Voids a pair during which the count of throttling events of any core rose."""

    def __init__(self, count: Callable[[], int] | None = None) -> None:
        self._count = count or throttle_count

    @staticmethod
    def readable() -> bool:
        """Whether this machine counts throttling where a user can read it."""
        return next(Path("/sys/devices/system/cpu").glob(_THROTTLE), None) is not None

    def start(self) -> None:
        self._before = self._count()

    def look(self) -> tuple[str, int]:
        before, self._before = self._before, self._count()
        return ("throttled", 0) if self._before > before else ("", 0)


def guards_here(limit: float = BUSY_SHARE) -> tuple[list[BusyMachine | Throttling], list[str]]:
    """The guards that this machine allows, and a note for each that it does not."""
    found: list[BusyMachine | Throttling] = []
    notes = []
    if BusyMachine.readable():
        found.append(BusyMachine(limit))
    else:
        notes.append("whether the machine was busy cannot be read here")
    if Throttling.readable():
        found.append(Throttling())
    else:
        notes.append("whether a core was throttled cannot be read here")
    return found, notes


def machine_busy_s() -> float:
    """Seconds that all cores together were busy since the start of the system, for whomever."""
    user, nice, system, _idle, _wait, interrupt, soft, steal = (
        int(each) for each in _STAT.read_text("ascii").split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + interrupt + soft + steal) / os.sysconf("SC_CLK_TCK")


def throttle_count() -> int:
    """Throttling events of all cores since the start of the system."""
    return sum(int(each.read_text("ascii")) for each in Path("/sys/devices/system/cpu").glob(_THROTTLE))
