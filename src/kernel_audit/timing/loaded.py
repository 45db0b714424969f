"""Sides from program bytes: loaded, compiled and run in this process, which imports no candidate code. Imports JAX."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from kernel_audit.errors import TargetError
from kernel_audit.program import LoadedProgram, load
from kernel_audit.program.placement import lay_over
from kernel_audit.records import TimedSide, digest_bytes
from kernel_audit.timing.side import Doubled, Sides
from kernel_audit.timing.task import Task

COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"


class LoadedSide:
    """A program ready to be timed. A call gives its flat list of results, every one complete.

    Nothing is donated, on either side: a program that consumes its operands would be spared a copy that its rival pays, and
    the operands are used again.
    """

    def __init__(self, role: str, name: str, data: bytes, *, floor_s: float = 0.0) -> None:
        program = load(data)
        refuse_interpreted(program, role)
        program.require_platform()
        specs, self.shardings = _specs(program)
        started = time.perf_counter()
        self._compiled = jax.jit(program.exported.call).lower(*specs).compile()
        self.compile_s = time.perf_counter() - started
        self.record = TimedSide(
            role=role, name=name, program=program.sidecar.digest, exported=digest_bytes(data), floor_s=floor_s
        )
        # No attribute access, no copy of a name that others could set again, between the two readings of the clock.
        self._wait = jax.block_until_ready

    def __call__(self, operands: Sequence[jax.Array]) -> Any:
        return self._wait(self._compiled(*operands))

    @property
    def taken_at(self) -> list[Any]:
        """The sharding at which the compiled program takes each operand; None for one that it does not use."""
        return list(self._compiled.input_shardings[0])

    def described(self) -> dict[str, Any]:
        """What the compiler says of it: "compiled" (a digest of the program's text), "memory" (bytes by kind) and "flops"; each
        empty or None where this runtime does not tell."""
        return {
            "compiled": _text_digest(self._compiled),
            "memory": _memory(self._compiled),
            "flops": _flops(self._compiled),
        }


class PlacedOperands:
    """Operands on the device: `sets` rotated ones, made at once, and fresh ones, each made when it is asked for.

    They are those of a task; `shardings` has one entry an operand, or is None for the first device.
    """

    def __init__(
        self,
        task: Task,
        sets: int,
        seed: int,
        *,
        shardings: Sequence[Any] | None = None,
    ) -> None:
        self._task = task
        self._seed = seed
        self._shardings = shardings
        self.sets = sets
        started = time.perf_counter()
        self._rotated = [self._placed(index) for index in range(sets)]
        self.placement_s = time.perf_counter() - started
        self.latest: Sequence[Any] = ()

    def rotated(self, index: int) -> list[jax.Array]:
        """Set `index`, on the device since the start."""
        self.latest = self._rotated[index]
        return self._rotated[index]

    def fresh(self, index: int) -> list[jax.Array]:
        """New values, placed and waited for."""
        self.latest = self._placed(index)
        return self.latest

    def again(self, index: int) -> Sequence[Any]:
        """The values of a set, made once more from their seed: host arrays, or device arrays of a task that generates them."""
        make = self._task.generate or self._task.make
        words = [self._seed, 0 if index >= 0 else 1, abs(index)]
        return make(int(np.random.SeedSequence(words).generate_state(1)[0]))

    def _placed(self, index: int) -> list[jax.Array]:
        arrays = self.again(index)
        where = self._shardings or [jax.local_devices()[0]] * len(arrays)
        return jax.block_until_ready([jax.device_put(each, at) for each, at in zip(arrays, where, strict=True)])


class Recompilation:
    """Voids a pair during which JAX compiled anything."""

    def __init__(self) -> None:
        self._count = self._seen = 0
        jax.monitoring.register_event_duration_secs_listener(self._hear)

    def start(self) -> None:
        self._seen = self._count

    def look(self) -> tuple[str, int]:
        seen, self._seen = self._seen, self._count
        return ("recompiled", 0) if self._seen > seen else ("", 0)

    def _hear(self, event: str, duration: float, **_: Any) -> None:
        if event == COMPILE_EVENT:
            self._count += 1


class Transfers:
    """Voids a pair whose operands did not lie where a side's compiled program takes them: its calls moved them inside the
    boundary. `wanted`: for each side the shardings of its operands, None for one that the program does not use."""

    def __init__(self, operands: Any, wanted: Sequence[Sequence[Any]]) -> None:
        self._operands = operands
        self._wanted = wanted

    def start(self) -> None: ...

    def look(self) -> tuple[str, int]:
        latest = self._operands.latest
        placed = all(
            _lies_at(each, at) for side in self._wanted for each, at in zip(latest, side, strict=True) if at is not None
        )
        return ("", 0) if placed else ("transfer", 0)


def _lies_at(operand: Any, sharding: Any) -> bool:
    return isinstance(operand, jax.Array) and operand.sharding.is_equivalent_to(sharding, operand.ndim)


def refuse_interpreted(program: LoadedProgram, role: str) -> None:
    """Raises TargetError for a program whose kernels would be interpreted: that has no time. Nothing is allocated yet."""
    if program.sidecar.mode != "generic" or not program.sidecar.kernels:
        return
    raise TargetError(
        "an interpreted kernel is never timed",
        stage="measure",
        where=f"the {role}: {', '.join(each.name for each in program.sidecar.kernels)}",
        expected="a program exported for a target, or one without a Pallas kernel on a CPU",
        got=f"mode {program.sidecar.mode!r}",
        next_command="kernel-audit measure AUDIT --target tpu, on a machine with one",
    )


def load_sides(candidate: bytes, baseline: bytes, names: tuple[str, str], floors_s: tuple[float, float]) -> Sides:
    """The programs of a process. The twin is the baseline's bytes, loaded and compiled once more: what a second copy of the
    same program costs is what the control must show."""
    for role, data in (("candidate", candidate), ("baseline", baseline)):
        refuse_interpreted(load(data), role)
    first = LoadedSide("baseline", names[1], baseline, floor_s=floors_s[1])
    made = {
        "candidate": LoadedSide("candidate", names[0], candidate, floor_s=floors_s[0]),
        "twin": LoadedSide("twin", names[1], baseline, floor_s=floors_s[1]),
    }
    sides = Sides(
        candidate=made["candidate"],
        baseline=first,
        twin=made["twin"],
        doubled=Doubled(first),
        compile_s={role: side.compile_s for role, side in {"baseline": first, **made}.items()},
        empty=_empty_program(),
    )
    return sides


def _empty_program() -> Callable[[], Any]:
    operand = jax.device_put(np.zeros((), np.float32))
    compiled = jax.jit(lambda x: x + 1).lower(operand).compile()
    wait = jax.block_until_ready
    return lambda: wait(compiled(operand))


def _text_digest(compiled: Any) -> str:
    try:
        text = compiled.as_text()
    except Exception:  # a runtime that keeps no text
        return ""
    return digest_bytes(text.encode()) if text else ""


def _memory(compiled: Any) -> dict[str, int]:
    try:
        told = compiled.memory_analysis()
        return {
            "arguments": int(told.argument_size_in_bytes),
            "results": int(told.output_size_in_bytes),
            "temporary": int(told.temp_size_in_bytes),
        }
    except Exception:  # a runtime that does not account for memory
        return {}


def _flops(compiled: Any) -> float | None:
    try:
        told = compiled.cost_analysis()
        told = told[0] if isinstance(told, (list, tuple)) else told
        flops = float(told.get("flops", 0.0))
    except Exception:  # a runtime without a cost model
        return None
    return flops if flops > 0 else None


def _specs(program: LoadedProgram) -> tuple[list[jax.ShapeDtypeStruct], list[Any] | None]:
    shardings: list[Any] | None = None
    if program.sidecar.mesh:
        shardings = list(lay_over(program.sidecar.mesh, program.sidecar.specs))
    avals = program.exported.in_avals
    where = shardings or [None] * len(avals)
    specs = [jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=at) for each, at in zip(avals, where, strict=True)]
    return specs, shardings
