"""In a worker: `target_benchmark` on the true backend, and on a stub that answers as a TPU would."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any

import jax

from kernel_audit.course.model_job import loaded, told_step
from kernel_audit.course.stub_device import Machine, StubArray

# name -> (what the backend is said to be, where the two operands lie, repeats; None leaves the default)
SCENARIOS: dict[str, tuple[str, tuple[str, str], int | None]] = {
    "other backend": ("cpu", ("tpu", "tpu"), None),
    "operands elsewhere": ("tpu", ("cpu", "cpu"), None),
    "second operand elsewhere": ("tpu", ("tpu", "cpu"), None),
    "no repeats": ("tpu", ("tpu", "tpu"), 0),
    "four repeats": ("tpu", ("tpu", "tpu"), 4),
    "five repeats": ("tpu", ("tpu", "tpu"), 5),
    "default": ("tpu", ("tpu", "tpu"), None),
}


def refuse_here(steps: Any, *, folder: str, file: str, name: str, parameters: Mapping[str, Any]) -> None:
    """Step "here": the function on this machine, with arrays of it. "called" says whether a side was traced or run."""
    called: list[str] = []

    def side(*args: Any) -> Any:
        called.append("side")
        return args[0]

    operand = jax.numpy.ones((8, 128), jax.numpy.float32)
    with loaded(steps, folder=folder, file=file, name=name, parameters=parameters) as function:
        if function is not None:
            with told_step(steps, "here") as told:
                told["called"] = called
                function(side, side, (operand, operand))


def try_on_stub(steps: Any, *, folder: str, file: str, name: str, parameters: Mapping[str, Any]) -> None:
    """A step a scenario: what was raised, what was compiled and called, and what was returned."""
    machine = Machine()
    machine.install()
    with loaded(steps, folder=folder, file=file, name=name, parameters=parameters) as function:
        if function is not None:
            _all_scenarios(steps, function, machine)


def _all_scenarios(steps: Any, function: Callable[..., Any], machine: Machine) -> None:
    for scenario, (backend, places, repeats) in SCENARIOS.items():
        machine.reset(backend)
        operands = tuple(StubArray(machine, each) for each in places)
        options = {} if repeats is None else {"repeats": repeats}
        with told_step(steps, scenario) as told:
            told["compiled"], told["uncompiled"], told["calls"] = machine.compiled, machine.uncompiled, machine.calls
            told["result"] = _plain(function(machine.side("candidate"), machine.side("baseline"), operands, **options))


def _plain(value: Any) -> Any:
    """A returned record as JSON: numbers become floats, what is none of JSON's types its text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if hasattr(value, "tolist") and not isinstance(value, StubArray):
        return _plain(value.tolist())
    if isinstance(value, Number) and not isinstance(value, bool):
        return float(value) if math.isfinite(float(value)) else repr(value)  # type: ignore[arg-type]
    return value if isinstance(value, str | bool) or value is None else repr(value)
