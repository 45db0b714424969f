"""Honest programs, most of them fast: the session must find their gain and accuse none of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from timing_stage import NOISE, Case, CpuTime, Honest, against

from kernel_audit.records import FASTER, NO_DIFFERENCE, SLOWER


class Scaled(Honest):
    """An honest program of another speed; `cold` is what fresh operands cost it on top."""

    def __init__(self, *arguments: Any, ratio: float, cold: float = 0.0, cpu: float = 1.0) -> None:
        super().__init__(*arguments)
        self.seconds *= ratio
        self.cold, self.cpu, self.seen = cold, cpu, set()

    def __call__(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        known = operands[0].tobytes() in self.seen
        self.seen.add(operands[0].tobytes())
        taken = self.seconds * (1 if known else 1 + self.cold)
        self.world.cpu_s = getattr(self.world, "cpu_s", 0.0) + taken * self.cpu
        self.take(taken)
        return self.compute(operands)


class ColdBaseline(Scaled):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, ratio=1.0, cold=0.5)


class BusyBaseline(Scaled):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, ratio=1.0)


class Reassociated(Scaled):
    """Rounds differently, within what is allowed."""

    def compute(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [operands[0] + operands[0] + (0.5 + 0.5) + 1e-12]


def _case(name: str, verdict: str, **options: Any) -> Case:
    made = {key: options.pop(key) for key in ("noise", "second_clock", "platform") if key in options}
    return Case(name, "honest", against(options.pop("kind", Scaled), **options), (verdict,), **made)


HONEST = (
    Case("the twin", "honest", against(Honest), (NO_DIFFERENCE,)),
    _case("half the time", FASTER, ratio=0.5),
    _case("a tenth of the time", FASTER, ratio=0.1),
    _case("a hundredth of the time", FASTER, ratio=0.01),
    _case("a tenth less", FASTER, ratio=0.9),
    _case("5 % less", FASTER, ratio=0.95),
    _case("slower", SLOWER, ratio=1.2),
    _case("fast, and fresh operands are cold for it", FASTER, ratio=0.5, cold=0.3),
    _case("fast, and fresh operands are cold for both", FASTER, ratio=0.5, cold=0.5, baseline=ColdBaseline),
    _case("fast, and rounds differently", FASTER, ratio=0.6, kind=Reassociated),
    _case(
        "fast, on one core instead of four",
        FASTER,
        ratio=0.8,
        cpu=1.0,
        baseline=BusyBaseline,
        second_clock=CpuTime,
        platform="cpu",
    ),
    _case(
        "fast, on all cores",
        FASTER,
        ratio=0.5,
        cpu=4.0,
        baseline=BusyBaseline,
        second_clock=CpuTime,
        platform="cpu",
    ),
    _case("fast in drift", FASTER, ratio=0.8, noise=dataclasses.replace(NOISE, drift=0.5)),
    _case("fast with heavy tails", FASTER, ratio=0.8, noise=dataclasses.replace(NOISE, tail_share=0.1, tail_index=1.5)),
    _case("fast after another", FASTER, ratio=0.8, noise=dataclasses.replace(NOISE, after_other=0.2)),
    _case(
        "fast, and throttled in the middle",
        FASTER,
        ratio=0.8,
        noise=dataclasses.replace(NOISE, throttle=0.5, throttle_share=0.4),
    ),
    _case("fast on a coarse clock", FASTER, ratio=0.7, noise=dataclasses.replace(NOISE, step_s=5e-6)),
)
