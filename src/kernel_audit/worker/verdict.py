"""From what was seen of a worker to one of six outcomes. Pure: nothing here touches a process or a file.

In this order: what was forged decides, then the deadline, then memory, then how the worker ended, then what
it said.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_NO_MEMORY = re.compile(
    r"std::bad_alloc|RESOURCE_EXHAUSTED|\bMemoryError\b|[Oo]ut of memory|Cannot allocate memory|failed to allocate"
)


@dataclass(frozen=True)
class Seen:
    """What the parent saw. `status` is that of wait4, None when nobody could say; `lost` says why."""

    result: Mapping[str, Any] | None
    forgery: str | None
    overdue: str | None
    status: int | None
    lost: str | None
    stderr: str


def judge(seen: Seen) -> tuple[str, dict[str, Any] | None]:
    """The outcome, and the error that goes with it."""
    if seen.forgery is not None:
        return "forged-output", _error("ForgedOutput", seen.forgery)
    if seen.overdue is not None:
        return "timed-out", _error("TimedOut", seen.overdue)
    if seen.lost is not None:
        return "crashed", _error("WorkerLost", seen.lost)
    if seen.status != 0 or seen.result is None:
        ending = _ending(seen.status)
        if _NO_MEMORY.search(seen.stderr):
            return "out-of-memory", _error("OutOfMemory", ending)
        return "crashed", _error("Crashed", ending)
    if "error" in seen.result:
        error = dict(seen.result["error"])
        return ("out-of-memory" if _is_memory(error) else "raised"), error
    return "finished", None


def _is_memory(error: Mapping[str, Any]) -> bool:
    """True for MemoryError and for XLA's RESOURCE_EXHAUSTED; an AuditError speaks for itself."""
    if "what" in error:
        return False
    return error["type"] == "MemoryError" or _NO_MEMORY.search(error["message"]) is not None


def _ending(status: int | None) -> str:
    if status is None:
        return "the worker ended and nobody saw how"
    if os.WIFSIGNALED(status):
        return f"the worker was ended by signal {os.WTERMSIG(status)}"
    return f"the worker ended with exit code {os.WEXITSTATUS(status)} and no result"


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"type": kind, "message": message, "where": ""}
