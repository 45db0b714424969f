"""A world without a device: a clock that stands still until a program runs, and programs that take a drawn time.

Whole sessions run on it through the code that also times devices, so the method itself can be tried thousands of times, with
a truth that is known. Nothing of it is ever a measurement: a session that it makes says "simulated" and may claim nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from kernel_audit.records import ClockRecord, OutputCheck, Session, SessionPlan, SessionScope, TimedSide
from kernel_audit.timing.clock import Clock
from kernel_audit.timing.plan import process_seed
from kernel_audit.timing.process import run_process
from kernel_audit.timing.side import Doubled, Guard, Judge, Operands, Side, Sides
from kernel_audit.timing.whole import assemble


@dataclass(frozen=True)
class Noise:
    """How times scatter. All sizes are fractions.

    `independent`: log standard deviation of each call. `carried`: log standard deviation of noise that decays with
    `memory`, the correlation of one call with the next. `spread`: standard deviation, between processes, of the log ratio of
    two programs that are equal. `tail_share` of the calls take longer by 1 + a Pareto draw of index `tail_index` times
    `tail_size`. `drift`: log change over a process, and `waves` of that size on it. `throttle`: times from a random call on
    are longer by this for a random stretch, with `throttle_share` of all calls. `after_other`: a call right after one of
    another program takes longer by this. `step_s`: the clock's step.
    """

    name: str
    independent: float = 0.1
    carried: float = 0.0
    memory: float = 0.0
    spread: float = 0.01
    tail_share: float = 0.0
    tail_index: float = 2.0
    tail_size: float = 1.0
    drift: float = 0.0
    waves: float = 0.0
    throttle: float = 0.0
    throttle_share: float = 0.0
    after_other: float = 0.0
    step_s: float = 1e-9
    overhead_s: float = 5e-8


class World:
    """The time of one simulated process. `now` moves when a program runs, and by `overhead_s` when it is read."""

    def __init__(self, noise: Noise, calls: int, seed: int) -> None:
        import numpy as np

        draw = np.random.default_rng(seed)
        self._noise = noise
        self._factors: list[float] = _factors(noise, calls, draw).tolist()
        self._call = 0
        self._last: object | None = None
        self._time = 0.0
        self.own_factor: Callable[[], float] = lambda: float(np.exp(draw.normal(0.0, noise.spread / 2**0.5)))

    def now(self) -> float:
        """Seconds, rounded down to the clock's step."""
        self._time += self._noise.overhead_s
        step = self._noise.step_s
        return (self._time // step) * step

    def record(self) -> ClockRecord:
        """As the noise states it."""
        return ClockRecord(
            name="simulated", kind="simulated", step_s=self._noise.step_s, overhead_s=self._noise.overhead_s
        )

    def pass_time(self, who: object, seconds: float) -> None:
        """`who` runs for a nominal time."""
        taken = seconds * self._factors[self._call % len(self._factors)]
        if self._noise.after_other and self._last is not who:
            taken *= 1 + self._noise.after_other
        self._call += 1
        self._last = who
        self._time += taken


class SimulatedSide:
    """A program that takes a nominal time, with a factor of its own in each process."""

    def __init__(self, world: World, role: str, seconds: float, *, floor_s: float = 0.0) -> None:
        self.record = TimedSide(role=role, name=role, program="simulated", exported="simulated", floor_s=floor_s)
        self._world = world
        self._seconds = seconds * world.own_factor()

    def __call__(self, operands: Any) -> Any:
        self._world.pass_time(self, self._seconds)


class NoOperands:
    """Simulated programs read nothing."""

    sets = 1

    def rotated(self, index: int) -> None: ...

    def fresh(self, index: int) -> None: ...


class SimulatedJudge:
    """Simulated programs have no values that could be wrong: counts the results that it is given, and finds all right."""

    def __init__(self) -> None:
        self._taken: dict[str, list[int]] = {}

    def take(self, side: Side, index: int, operands: Any, output: Any) -> None:
        self._taken.setdefault(side.record.role, []).append(index)

    def conclude(self, timed: dict[str, int]) -> list[OutputCheck]:
        return [
            OutputCheck(
                role=role,
                how="simulated",
                timed=timed[role],
                checked=len(indices),
                fresh=sum(index < 0 for index in indices),
                differing=0,
            )
            for role in sorted(timed)
            for indices in [self._taken.get(role, [])]
        ]


@dataclass(frozen=True)
class Stage:
    """What stands in a simulated world beside its noise; by default two programs without values."""

    sides: Callable[[World, float, float], Sides] | None = None
    operands: Callable[[World], Operands] = lambda world: NoOperands()
    judge: Callable[[World], Judge] = lambda world: SimulatedJudge()
    guards: Callable[[World], Sequence[Guard]] = lambda world: ()
    second_clock: Callable[[World], Clock] | None = None
    platform: str = "simulated"


def simulate_session(
    noise: Noise, plan: SessionPlan, *, ratio: float = 1.0, base_s: float = 1e-3, stage: Stage | None = None
) -> Session:
    """A whole session in which the candidate truly takes `ratio` times as long as the baseline's `base_s`.

    A process in which a program raises is lost and recorded so, as it is on a device.
    """
    stage = stage or Stage()
    processes, lost, second = [], [], None
    for index in range(plan.processes):
        calls = 4 * (plan.pairs // plan.processes) + 3 * plan.direction_pairs + 5 * plan.warm_ups
        world = World(noise, calls, process_seed(plan, index) ^ 0x5EED)
        made = (stage.sides or plain_sides)(world, base_s, ratio)
        second = stage.second_clock(world) if stage.second_clock is not None else None
        given, judge, guards = stage.operands(world), stage.judge(world), stage.guards(world)
        try:
            processes.append(run_process(made, given, judge, world, plan, index, second_clock=second, guards=guards))
        except ArithmeticError as error:
            lost.append(f"process {index}: {error}")
    return assemble(
        provenance="simulated",
        scope=SessionScope(platform=stage.platform, device_kind="simulated", device_count=1, claims="method-only"),
        clock=world.record(),
        second_clock=second.record() if second is not None else None,
        sides=[made.candidate.record, made.baseline.record],
        plan=plan,
        processes=processes,
        lost=lost,
    )


def plain_sides(world: World, base_s: float, ratio: float) -> Sides:
    """Two programs, the twin and the doubled one, without values."""
    baseline = SimulatedSide(world, "baseline", base_s)
    return Sides(
        candidate=SimulatedSide(world, "candidate", base_s * ratio),
        baseline=baseline,
        twin=SimulatedSide(world, "twin", base_s),
        doubled=Doubled(baseline),
    )


def _factors(noise: Noise, calls: int, draw: Any) -> Any:
    """The factor of each call in the order of calls, float64 of shape (calls,)."""
    import numpy as np

    logs = draw.normal(0.0, noise.independent, calls) if noise.independent else np.zeros(calls)
    if noise.carried:
        logs += _carried(draw.normal(0.0, noise.carried, calls), noise.memory)
    along = np.linspace(0.0, 1.0, calls)
    if noise.drift:
        logs += noise.drift * along * draw.choice([-1.0, 1.0])
    if noise.waves:
        logs += noise.waves * np.sin(2 * np.pi * (along * draw.uniform(2, 6) + draw.uniform()))
    factors = np.exp(logs)
    if noise.tail_share:
        late = draw.random(calls) < noise.tail_share
        factors *= 1 + late * noise.tail_size * draw.pareto(noise.tail_index, calls)
    if noise.throttle:
        start = int(draw.integers(0, calls))
        factors[start : start + int(noise.throttle_share * calls)] *= 1 + noise.throttle
    return factors


def _carried(shocks: Any, memory: float) -> Any:
    """A first-order autoregression with the standard deviation of `shocks`."""
    import numpy as np

    scale = (1 - memory**2) ** 0.5
    carried = np.empty_like(shocks)
    value = shocks[0]
    for index, shock in enumerate(shocks.tolist()):
        value = memory * value + scale * shock
        carried[index] = value
    return carried
