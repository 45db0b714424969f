"""What a model file promises, stage by stage, and a line for each promise that was looked at."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Check:
    """One promise, kept when `seen` is empty; else `seen` says what was seen instead. `note` belongs to a kept one."""

    stage: int
    promise: str
    seen: str = ""
    note: str = ""

    @property
    def text(self) -> str:
        """The line of this check, without line breaks."""
        rest = f": {self.seen}" if self.seen else f" ({self.note})" if self.note else ""
        line = re.sub(r"\s+", " ", f"stage {self.stage}: {self.promise}{rest}")
        return f"{'FAIL' if self.seen else 'ok  '} {line}"


@dataclass(frozen=True)
class Wanted:
    """A function that a model file has: `audit` is the built-in audit that judges it, `parameters` its parameters in
    order with the defaults that the course documents (`...` for none)."""

    name: str
    stage: int
    audit: str | None
    parameters: Mapping[str, Any]


WANTED = (
    Wanted("blocked_axpy", 1, "blocked-axpy", {"x": ..., "y": ..., "block": (2, 4)}),
    Wanted("fused_bias_relu", 2, "bias-relu", {"x": ..., "bias": ..., "block": (8, 128), "mode": "interpret"}),
    Wanted(
        "pipelined_axpy",
        3,
        "axpy",
        {"x": ..., "y": ..., "block": (8, 128), "buffers": 2, "no_pipelining": False, "mode": "simulate"},
    ),
    Wanted("target_benchmark", 3, None, {"candidate": ..., "baseline": ..., "args": ..., "repeats": 20}),
)
STAGES = ("1", "2", "3", "all")


def wanted_at(stage: str) -> tuple[Wanted, ...]:
    """The functions that a stage looks at: its own and those of the stages before it."""
    last = 3 if stage == "all" else int(stage)
    return tuple(each for each in WANTED if each.stage <= last)
