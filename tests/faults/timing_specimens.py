"""Programs and harness faults that make a kernel look fast, each written from its class in a list of public reports."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from timing_stage import BASE_S, NOISE, Case, CpuTime, Honest, against

from kernel_audit.records import CANNOT_TELL, FASTER, NO_DIFFERENCE, REFUSED, SLOWER
from kernel_audit.timing import Doubled, Sides, World

QUICK_S = 1e-5  # what a look-up takes
NOT_FASTER = (SLOWER, NO_DIFFERENCE, CANNOT_TELL, REFUSED)


class Cached(Honest):
    """Keeps results under a key of the operands; computes what it has not seen."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.known: dict[Any, Any] = {}

    def key(self, operands: Sequence[np.ndarray]) -> Any:
        return id(operands[0])

    def __call__(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        key = self.key(operands)
        if key in self.known:
            self.take(QUICK_S)
            return self.known[key]
        self.take(self.seconds)
        self.known[key] = self.compute(operands)
        self.keep = getattr(self, "keep", [])
        self.keep.append(operands)  # so that no id is used again
        return self.known[key]


class FingerprintCached(Cached):
    def key(self, operands: Sequence[np.ndarray]) -> Any:
        return float(operands[0][0]), float(operands[0][-1])


class SumCached(Cached):
    def key(self, operands: Sequence[np.ndarray]) -> Any:
        return float(operands[0].sum())


class ShapeCached(Cached):
    """Takes the shape for the whole identity: stale for any other values."""

    def key(self, operands: Sequence[np.ndarray]) -> Any:
        return operands[0].shape


class RoundedCached(Cached):
    """A key so short that other values fall on it."""

    def key(self, operands: Sequence[np.ndarray]) -> Any:
        return bool(operands[0][0] > 0)


class Bank(Cached):
    """All answers to the rotated sets worked out before the clock starts."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        from timing_stage import Values

        self.known = {float(Values().host(i)[0].sum()): self.compute(Values().host(i)) for i in range(Values.sets)}

    def key(self, operands: Sequence[np.ndarray]) -> Any:
        return float(operands[0].sum())


class Peeking(Cached):
    """Another thread worked while the operands lay there: the rotated ones lay there long enough."""

    def key(self, operands: Sequence[np.ndarray]) -> Any:
        return operands[0].tobytes()


class Wrong(Honest):
    """Quick, and wrong in the way of `wrongly`."""

    def __init__(self, *arguments: Any, wrongly: str) -> None:
        super().__init__(*arguments)
        self.wrongly, self.calls, self.first = wrongly, 0, None
        self.seconds *= 0.5

    def compute(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.calls += 1
        x = operands[0]
        right = 2 * x + 1
        self.first = right if self.first is None else self.first
        return [_wrong_ways(self, x, right)[self.wrongly]()]


def _wrong_ways(side: Wrong, x: np.ndarray, right: np.ndarray) -> dict[str, Any]:
    def part() -> np.ndarray:
        return np.concatenate([right[: len(x) // 2], np.zeros(len(x) - len(x) // 2)])

    return {
        "the first answer for ever": lambda: side.first,
        "zeros": lambda: np.zeros_like(x),
        "half of the elements": part,
        "its operand": lambda: x,
        "not finite": lambda: np.full_like(x, np.nan),
        "cheap at this size": lambda: right.astype(np.float16).astype(np.float64) if len(x) > 32 else right,
        "cheap at this magnitude": lambda: 2 * x.astype(np.float32) + 1.01 if np.abs(x[:4]).max() < 3 else right,
        "one call in ten": lambda: right + (side.calls % 10 == 0),
        "only after the warm-ups": lambda: right + (side.calls > 5),
        "only on fresh operands": lambda: right + (side.calls % 6 == 0),
        "transposed": lambda: right.reshape(8, 8).T,
        "in a container": lambda: right[None],
        "the answer to the call before": lambda: side.first,
        "fewer steps than asked": lambda: x + 1,
        "the weights of the import": lambda: 2 * np.ones_like(x) + 1,
    }


class Asleep(Honest):
    """An answer that was ready, after a believable wait: the wall clock moves, the processor does nothing."""

    def __call__(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.take(0.8 * self.seconds)
        return self.compute(operands)


class Working(Honest):
    """An honest side that spends CPU time while it runs."""

    def __call__(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.world.cpu_s += self.seconds
        return super().__call__(operands)


class SlowFirst(Honest):
    """Compiles, faults pages in, fills caches: its first calls take a hundred times as long."""

    calls = 0

    def __call__(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.calls += 1
        self.take(self.seconds * (100 if self.calls <= 4 else 1))
        return self.compute(operands)


class Recompiling(SlowFirst):
    """A baseline that compiles in every call."""

    def __call__(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.world.compiled = True
        self.take(self.seconds * 6)
        return self.compute(operands)


class CompileGuard:
    def __init__(self, world: World) -> None:
        self.world = world

    def start(self) -> None:
        self.world.compiled = False

    def look(self) -> tuple[str, int]:
        seen, self.world.compiled = self.world.compiled, False
        return ("recompiled", 0) if seen else ("", 0)


class Throttled(Honest):
    """A baseline timed on a throttled device."""

    def __call__(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.world.compiled = True
        self.take(self.seconds * 1.5)
        return self.compute(operands)


class ThrottleGuard(CompileGuard):
    def look(self) -> tuple[str, int]:
        reason, backwards = super().look()
        return ("throttled" if reason else "", backwards)


class HostOperands:
    """Sees that operands were no device arrays (here: all of them are host arrays)."""

    def __init__(self, world: World) -> None: ...
    def start(self) -> None: ...
    def look(self) -> tuple[str, int]:
        return "transfer", 0


class Failing(Honest):
    """Raises where it would lose, in the hope that a failure counts as a draw."""

    def __call__(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        if operands[0][0] > 0:
            raise ArithmeticError("not today")
        return super().__call__(operands)


class Instant(Honest):
    """Right, and faster than memory could move its operands."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, floor_s=0.4e-3)
        self.seconds *= 0.01


class HalfTraced(Honest):
    """A trace that misses the events of this side: the second clock hears a tenth of what the first sees."""

    def __call__(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.world.cpu_s += 0.1 * self.seconds
        return super().__call__(operands)


class TraceClock(CpuTime):
    def record(self) -> Any:
        import msgspec

        return msgspec.structs.replace(super().record(), kind="device-trace")


def exchanged(world: World) -> Sides:
    """A harness that took the slots for each other: the slow candidate stands where the baseline should."""
    made = against(Honest)(world)
    slow = Honest(world, "candidate", 2 * BASE_S)
    return Sides(candidate=made.baseline, baseline=slow, twin=made.twin, doubled=made.baseline)


def tiny(world: World) -> Sides:
    """A problem so small that only the dispatch is timed."""
    made = against(Honest)(world)
    made.empty = lambda: world.pass_time(None, 0.9 * BASE_S)
    return made


def doubled_baseline(world: World) -> Sides:
    """A baseline slowed down in the shared process, its twin in the clean one not."""
    made = against(Honest)(world)
    slow = Honest(world, "baseline", 1.4 * BASE_S)
    return Sides(candidate=made.candidate, baseline=slow, twin=made.twin, doubled=Doubled(slow))


WRONG_WAYS = tuple(
    Case(f"wrong: {way}", kind, against(Wrong, wrongly=way), (REFUSED,), "timed-output-differs")
    for way, kind in (
        ("the first answer for ever", "stale-captured-graph"),
        ("zeros", "credited-work-not-done"),
        ("half of the elements", "credited-work-not-done"),
        ("its operand", "credited-work-not-done"),
        ("not finite", "poison-aware-recompute"),
        ("cheap at this size", "checked-size-vs-timed-size"),
        ("cheap at this magnitude", "magnitude-sniff-dispatch"),
        ("one call in ten", "batch-and-skip"),
        ("only after the warm-ups", "caller-sniffing"),
        ("only on fresh operands", "poison-aware-recompute"),
        ("transposed", "scope-mismatch"),
        ("in a container", "container-output-not-awaited"),
        ("the answer to the call before", "input-peek-window"),
        ("fewer steps than asked", "credited-work-not-done"),
        ("the weights of the import", "setup-hoisting"),
    )
)
CACHES = (
    Case(
        "cache by identity", "identity-keyed-result-cache", against(Cached), (CANNOT_TELL,), "faster-on-known-operands"
    ),
    Case(
        "cache by two elements",
        "fingerprint-keyed-result-cache",
        against(FingerprintCached),
        (CANNOT_TELL,),
        "faster-on-known-operands",
    ),
    Case(
        "cache by sum", "fingerprint-keyed-result-cache", against(SumCached), (CANNOT_TELL,), "faster-on-known-operands"
    ),
    Case("cache by shape", "file-or-shm-replay", against(ShapeCached), (REFUSED,), "timed-output-differs"),
    Case(
        "cache by a sign", "fingerprint-keyed-result-cache", against(RoundedCached), (REFUSED,), "timed-output-differs"
    ),
    Case("answers worked out before", "batch-and-skip", against(Bank), (CANNOT_TELL,), "faster-on-known-operands"),
    Case("peeked at lying operands", "input-peek-window", against(Peeking), (CANNOT_TELL,), "faster-on-known-operands"),
)
SURROUNDINGS = (
    Case(
        "slow first calls of the baseline", "compile-time-in-baseline", against(Honest, baseline=SlowFirst), NOT_FASTER
    ),
    Case("slow first calls of the candidate", "warmup-inflation", against(SlowFirst), NOT_FASTER),
    Case(
        "a baseline that compiles in each call",
        "compile-time-in-baseline",
        against(Honest, baseline=Recompiling),
        (CANNOT_TELL,),
        "recompiled",
        guards=lambda world: [CompileGuard(world)],
    ),
    Case(
        "a throttled baseline",
        "run-order-effect",
        against(Honest, baseline=Throttled),
        (CANNOT_TELL,),
        "throttled",
        guards=lambda world: [ThrottleGuard(world)],
    ),
    Case(
        "operands moved inside the boundary",
        "scope-mismatch",
        against(Honest),
        (CANNOT_TELL,),
        "transfer",
        guards=lambda world: [HostOperands(world)],
    ),
    Case(
        "who runs second finds warm caches",
        "run-order-effect",
        against(Honest),
        NOT_FASTER,
        noise=dataclasses.replace(NOISE, after_other=0.3),
    ),
    Case(
        "the machine becomes faster while it runs",
        "run-order-effect",
        against(Honest),
        NOT_FASTER,
        noise=dataclasses.replace(NOISE, drift=0.8),
    ),
    Case(
        "a throttle step in the middle",
        "run-order-effect",
        against(Honest),
        NOT_FASTER,
        noise=dataclasses.replace(NOISE, throttle=1.0, throttle_share=0.5),
    ),
    Case("exchanged slots", "swapped-slots", exchanged, (CANNOT_TELL,), "direction-control-failed"),
    Case("a baseline slowed down", "baseline-sabotage", doubled_baseline, (CANNOT_TELL,), "control-clear-of-1"),
    Case("nothing but dispatch", "overhead-dominated-size", tiny, NOT_FASTER, "dispatch-dominated"),
    Case(
        "a clock that cannot tell",
        "overhead-dominated-size",
        against(Honest),
        (CANNOT_TELL,),
        "clock-too-coarse",
        noise=dataclasses.replace(NOISE, step_s=4e-4),
    ),
    Case("below the physical floor", "cache-warm-loop", against(Instant), (REFUSED,), "below-floor"),
    Case("fails where it would lose", "failure-scored-as-parity", against(Failing), (CANNOT_TELL,), "too-few-pairs"),
    Case(
        "asleep for a believable time",
        "plausible-latency-fabrication",
        against(Asleep, baseline=Working),
        (FASTER,),
        "idle-while-timed",
        second_clock=CpuTime,
        platform="cpu",
    ),
    Case(
        "events of one side are dropped",
        "overbroad-event-filter",
        against(HalfTraced, baseline=Working),
        NOT_FASTER,
        "clocks-disagree",
        second_clock=TraceClock,
    ),
    Case(
        "one side by the trace, one by the wall",
        "mixed-clocks",
        against(Honest, baseline=Working),
        NOT_FASTER,
        "",
        second_clock=TraceClock,
    ),
)
SPECIMENS = (*WRONG_WAYS, *CACHES, *SURROUNDINGS)
