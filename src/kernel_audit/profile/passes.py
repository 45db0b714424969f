"""The passes over a compiled step: the timed one, the one that shows the profiler's cost, and the traced one. Never two in
one.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from kernel_audit.errors import EnvironmentFault
from kernel_audit.profile.placed_step import CompiledStep, PlacedStep
from kernel_audit.profile.planes import EXECUTE, STAGE, STEP
from kernel_audit.records import Overhead, WarmPass
from kernel_audit.statistics import median

WARM_UP = 3
_COMPILING = "/jax/core/compile/"
BOUNDARY = (
    "from operands on the host, over their placement on the devices, to results that are ready; the step's state stays on the "
    "devices, and the program starts when the placement is complete"
)


class Runner:
    """Runs a compiled step: places what is no state, calls the program, waits. `call` may be a twin of the same operands."""

    def __init__(self, step: PlacedStep, compiled: CompiledStep) -> None:
        self._step = step
        self._call = compiled.call
        self._kept = {
            index: jax.block_until_ready(jax.device_put(step.host[index], step.shardings[index]))
            for index, name in enumerate(step.names)
            if name in step.state
        }
        self.placement = self._require_placement()
        self.dispatched_ns = 0

    def placed(self) -> list[jax.Array]:
        """All operands on their devices, those that are no state placed anew, and complete."""
        host, lay, kept = self._step.host, self._step.shardings, self._kept
        found = [
            kept[index] if index in kept else jax.device_put(host[index], lay[index]) for index in range(len(host))
        ]
        return jax.block_until_ready(found)

    def once(self) -> int:
        """One synchronised step; its wall in ns."""
        began = time.perf_counter_ns()
        with jax.profiler.TraceAnnotation(STAGE):
            operands = self.placed()
        with jax.profiler.TraceAnnotation(EXECUTE):
            results = self._call(*operands)
            self.dispatched_ns = time.perf_counter_ns() - began
            jax.block_until_ready(results)
        return time.perf_counter_ns() - began

    def traced(self, number: int) -> int:
        """One step under its annotation."""
        with jax.profiler.StepTraceAnnotation(STEP, step_num=number):
            return self.once()

    def results(self) -> list[np.ndarray]:
        """The step's results as arrays of the host."""
        return [np.asarray(each) for each in jax.tree.leaves(self._call(*self.placed()))]

    def _require_placement(self) -> dict[str, str]:
        """Where each operand was observed to lie. A silent replication, or an operand left on the host, is an error: a compiled
        program takes a NumPy array without a word, and staging would hide in the step."""
        observed = {}
        for name, array, wanted in zip(self._step.names, self.placed(), self._step.shardings, strict=True):
            if not isinstance(array, jax.Array) or not array.sharding.is_equivalent_to(wanted, array.ndim):
                raise EnvironmentFault(
                    "an operand does not lie where it was asked to",
                    stage="profile",
                    where=name,
                    expected=str(wanted.spec),
                    got=str(getattr(array, "sharding", "an array of the host")),
                )
            shard = array.addressable_shards[0].data.shape
            observed[name] = f"{list(array.shape)} as {len(array.addressable_shards)} of {list(shard)}, {wanted.spec}"
        return observed


@contextlib.contextmanager
def compile_events() -> Iterator[list[str]]:
    """The traces, lowerings and compilations that JAX reports while open; none is the proof that a pass was warm."""
    found: list[str] = []
    open_ = [True]

    def listen(name: str, _: float, **__: Any) -> None:
        if open_ and name.startswith(_COMPILING):
            found.append(name.removeprefix(_COMPILING))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield found
    finally:
        open_.clear()  # a listener cannot be taken off by a public function


def warm_pass(runner: Runner, steps: int) -> WarmPass:
    """`steps` timed steps, after a few that are not; each waits for its results."""
    for _ in range(WARM_UP):
        runner.once()
    walls, dispatched = [], []
    with compile_events() as events:
        for _ in range(steps):
            walls.append(runner.once())
            dispatched.append(runner.dispatched_ns)
    return WarmPass(
        wall_ns=walls,
        dispatched_ns=dispatched,
        synchronised=len(walls),
        compile_events=len(events),
        boundary=BOUNDARY,
    )


def overhead_pass(runner: Runner, folder: Path, *, rounds: int = 3, steps: int = 8) -> Overhead:
    """Blocks of steps with and without the profiler in turn, the first alternating. Their traces are thrown away."""
    untraced: list[int] = []
    traced: list[int] = []
    for number in range(rounds):
        for with_profiler in (False, True) if number % 2 == 0 else (True, False):
            if with_profiler:
                with tracing(folder / f"overhead-{number}"):
                    traced += [runner.traced(index) for index in range(steps)]
                shutil.rmtree(folder / f"overhead-{number}", ignore_errors=True)
            else:
                untraced += [runner.traced(index) for index in range(steps)]
    return Overhead(untraced_ns=untraced, traced_ns=traced, ratio=median(traced) / median(untraced))


def traced_pass(runner: Runner, steps: int, folder: Path) -> tuple[Path, Path, int]:
    """(the .xplane.pb file, the .json.gz file, compile events) of `steps` traced steps. One folder a rank: two would overwrite
    each other."""
    runner.once()
    with compile_events() as events, tracing(folder):
        for number in range(steps):
            runner.traced(number)
    return _only(folder, "*.xplane.pb"), _only(folder, "*.json.gz"), len(events)


@contextlib.contextmanager
def tracing(folder: Path) -> Iterator[None]:
    """The profiler at work. Without Python's frames: they would be most of the events, and name files."""
    options = jax.profiler.ProfileOptions()
    options.python_tracer_level = 0
    options.host_tracer_level = 2  # 0 has no operations of a CPU
    jax.profiler.start_trace(str(folder), profiler_options=options)
    try:
        yield
    finally:
        jax.profiler.stop_trace()


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.rglob(pattern))
    if len(found) != 1:
        raise EnvironmentFault(
            "the profiler did not leave one trace",
            stage="profile",
            where=pattern,
            expected="one file",
            got=f"{len(found)} files",
        )
    return found[0]
