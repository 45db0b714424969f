"""One process of a session as a job: programs from bytes, timed and checked here, with no candidate code imported."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jaxlib
import msgspec

from kernel_audit.errors import TargetError
from kernel_audit.records import SessionPlan, SessionScope
from kernel_audit.target import require_target
from kernel_audit.timing.clock import cpu_clock, host_clock
from kernel_audit.timing.guards import BUSY_SHARE, guards_here
from kernel_audit.timing.judging import HeldResults
from kernel_audit.timing.loaded import LoadedSide, PlacedOperands, Recompilation, Transfers, load_sides
from kernel_audit.timing.plan import process_seed
from kernel_audit.timing.process import run_process
from kernel_audit.timing.task import Task

_PLATFORMS = {"cpu": "cpu", "tpu": "tpu", "gpu": "gpu", "cuda": "gpu", "rocm": "gpu"}


def time_process(
    steps: Any,
    *,
    programs: dict[str, str],
    names: dict[str, str],
    task: dict[str, Any],
    plan: dict[str, Any],
    index: int,
    floors_s: dict[str, float] | None = None,
    busy_share: float = BUSY_SHARE,
    target: str = "cpu",
) -> None:
    """Times process `index` of a session; the step "process" holds the `TimedProcess`, scope, clocks and sides.

    `programs` maps "candidate" and "baseline" to files of program bytes, `names` to names for the record. `task` names in
    "function" ("module:function") what makes the `Task`, with its "arguments". Raises TargetError where this process's backend
    is not `target` ("cpu", "tpu" or "gpu"), before anything is read or made.
    """
    require_backend(target)
    steps.begin("process")
    data = {role: Path(place).read_bytes() for role, place in programs.items()}
    made = _task(task)
    steps.finish(
        "process",
        measure_process(data, names, made, msgspec.convert(plan, SessionPlan), index, floors_s or {}, busy_share),
    )


def measure_process(
    programs: Mapping[str, bytes],
    names: Mapping[str, str],
    task: Task,
    plan: SessionPlan,
    index: int,
    floors_s: Mapping[str, float],
    busy_share: float = BUSY_SHARE,
) -> dict[str, Any]:
    """The same in this process, as plain data: "process", "scope", "clock", "second_clock" and "sides".

    Raises TargetError for an interpreted program, before any array is made.
    """
    recompilation = Recompilation()
    floors = (floors_s.get("candidate", 0.0), floors_s.get("baseline", 0.0))
    sides = load_sides(programs["candidate"], programs["baseline"], (names["candidate"], names["baseline"]), floors)
    operands = PlacedOperands(
        task, plan.input_sets, process_seed(plan, index), shardings=getattr(sides.baseline, "shardings", None)
    )
    sides.placement_s = operands.placement_s
    judge = HeldResults(operands.again, task.expected, task.agree, task.how)
    here, notes = guards_here(busy_share)
    clock, second = host_clock(), cpu_clock()
    loaded = [each for each in (sides.candidate, sides.baseline, sides.twin) if isinstance(each, LoadedSide)]
    guards = [recompilation, Transfers(operands, [each.taken_at for each in loaded]), *here]
    with _collector_off():
        found = run_process(sides, operands, judge, clock, plan, index, second_clock=second, guards=guards)
    process = msgspec.structs.replace(found, notes=notes)
    return {
        "process": msgspec.to_builtins(process),
        "scope": msgspec.to_builtins(scope_here()),
        "clock": msgspec.to_builtins(clock.record()),
        "second_clock": msgspec.to_builtins(second.record()),
        "sides": [msgspec.to_builtins(each.record) for each in (sides.candidate, sides.baseline)],
    }


@contextlib.contextmanager
def _collector_off() -> Iterator[None]:
    """Python's collector runs before and not while pairs are timed, as in `timeit`."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def require_backend(target: str) -> None:
    """Raises TargetError unless JAX's own backend here is `target`. Nothing is allocated."""
    if target != "cpu":
        require_target(target)
    elif jax.default_backend() != "cpu":
        raise TargetError(
            "a session for the host's part runs on a CPU",
            stage="measure",
            where="--target cpu",
            expected="backend 'cpu'",
            got=f"backend {jax.default_backend()!r}",
            next_command="set JAX_PLATFORMS=cpu",
        )


def scope_here() -> SessionScope:
    """This process's devices. A CPU may claim nothing about a target."""
    devices = jax.local_devices()
    named = _PLATFORMS.get(devices[0].platform, devices[0].platform)
    return SessionScope(
        platform=named,
        device_kind=devices[0].device_kind,
        device_count=len(devices),
        claims="target" if named in ("tpu", "gpu") else "host-only",
        versions={
            "jax": jax.__version__,
            "jaxlib": jaxlib.__version__,
            "python": platform.python_version(),
            "runtime": " ".join(str(getattr(devices[0].client, "platform_version", "")).split())[:200],
            "cores": str(os.cpu_count()),
        },
    )


def _task(named: Mapping[str, Any]) -> Task:
    module, _, name = named["function"].partition(":")
    function: Callable[..., Task] = getattr(importlib.import_module(module), name)
    return function(**named.get("arguments", {}))
