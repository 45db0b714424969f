"""A stored timing verdict beside the one that its session gives now: what `verify` says where they differ."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from kernel_audit.records.timing import Session, TimingVerdict
from kernel_audit.statistics.session_verdict import session_verdict

# The logarithms of two machines may differ in their last digit; an altered sample moves far more.
RELATIVE = 1e-9


def recomputed_differences(stored: TimingVerdict, session: Session) -> list[str]:
    """Sentences that name each field of `stored` that its session does not give; empty where all agree.

    The session is judged at the margin of the stored verdict.
    """
    again = session_verdict(session, margin=stored.margin)
    found: list[str] = []
    _compare("", msgspec.to_builtins(stored), msgspec.to_builtins(again), found)
    return found


def _compare(place: str, stored: Any, again: Any, found: list[str]) -> None:
    if isinstance(stored, dict) and isinstance(again, dict):
        for key in sorted({*stored, *again}):
            _compare(f"{place}.{key}" if place else key, stored.get(key), again.get(key), found)
    elif isinstance(stored, list) and isinstance(again, list) and len(stored) == len(again):
        for index, (ours, theirs) in enumerate(zip(stored, again, strict=True)):
            _compare(f"{place}[{index}]", ours, theirs, found)
    elif isinstance(stored, float) and isinstance(again, float) and math.isclose(stored, again, rel_tol=RELATIVE):
        return
    elif stored != again:
        found.append(f"{place}: {stored!r} is written, its samples give {again!r}")
