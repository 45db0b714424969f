"""A stage for programs that look fast: a simulated clock, real values, and an honest program to stand beside each.

The honest program computes 2x + 1 and takes its time. A specimen is a side that does something else; what a harness could be
told by it is told to the session alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernel_audit.records import ClockRecord, Session, SessionPlan, TimedSide
from kernel_audit.timing import Doubled, Noise, Sides, Stage, World, plan_session, simulate_session
from kernel_audit.timing.judging import HeldResults, close_to

NOISE = Noise("quiet", independent=0.05, spread=0.005)
PLAN = plan_session(seed=11, input_sets=4, pairs=160, processes=8, fresh_every=6, check_every=4)
SIZE = 64
BASE_S = 1e-3


class Values:
    """Operands as host arrays: rotated ones are the same objects each time, fresh ones are not."""

    sets = 4

    def __init__(self) -> None:
        self._rotated = [self.host(index) for index in range(self.sets)]
        self.latest: Sequence[Any] = ()

    def rotated(self, index: int) -> Sequence[np.ndarray]:
        return self._rotated[index]

    def fresh(self, index: int) -> Sequence[np.ndarray]:
        return self.host(index)

    def host(self, index: int) -> Sequence[np.ndarray]:
        return [np.random.default_rng(1000 + index).normal(size=SIZE)]


def expected(operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [2 * operands[0] + 1]


class Honest:
    """Computes what it is asked, in `seconds`."""

    def __init__(self, world: World, role: str, seconds: float, floor_s: float = 0.0) -> None:
        self.record = TimedSide(role=role, name=role, program="p", exported="e", floor_s=floor_s)
        self.world, self.seconds = world, seconds * world.own_factor()

    def __call__(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.take(self.seconds)
        return self.compute(operands)

    def take(self, seconds: float) -> None:
        self.world.pass_time(self, seconds)

    def compute(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        return expected(operands)


class CpuTime:
    """A second clock: the CPU time that sides say they spent."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.cpu_s = 0.0

    def now(self) -> float:
        return self.world.cpu_s

    def record(self) -> ClockRecord:
        return ClockRecord(name="cpu", kind="process-cpu", step_s=1e-9, overhead_s=0.0)


@dataclasses.dataclass(frozen=True)
class Case:
    """A specimen: what makes its sides, and what the session is to end with.

    `verdicts`: one of them, whatever the honest twin's. `reason`: among the reasons or findings, where one is named.
    """

    name: str
    kind: str
    sides: Callable[[World], Sides]
    verdicts: tuple[str, ...]
    reason: str = ""
    noise: Noise = NOISE
    plan: SessionPlan = PLAN
    guards: Callable[[World], Sequence[Any]] = lambda world: ()
    second_clock: Callable[[World], Any] | None = None
    platform: str = "simulated"

    def session(self) -> Session:
        made: list[Values] = []

        def operands(_: World) -> Values:
            made.append(Values())
            return made[-1]

        stage = Stage(
            sides=lambda world, base_s, ratio: self.sides(world),
            operands=operands,
            judge=lambda _: HeldResults(made[-1].host, expected, close_to(1e-9), "2x + 1 on the host"),
            guards=self.guards,
            second_clock=self.second_clock,
            platform=self.platform,
        )
        return simulate_session(self.noise, self.plan, stage=stage)


def against(candidate: Callable[..., Honest], **options: Any) -> Callable[[World], Sides]:
    """Sides in which `candidate(world, "candidate", seconds)` meets an honest baseline."""
    base = options.pop("baseline", Honest)

    def make(world: World) -> Sides:
        baseline = base(world, "baseline", BASE_S)
        return Sides(
            candidate=candidate(world, "candidate", BASE_S, **options),
            baseline=baseline,
            twin=base(world, "twin", BASE_S),
            doubled=Doubled(baseline),
        )

    return make
