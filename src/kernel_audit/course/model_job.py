"""In a worker: what a traced program cannot show. Imports a model file, calls its functions, reads their pipelines."""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from kernel_audit.contract import FunctionRef, parse_array
from kernel_audit.course.fresh import fresh_operands
from kernel_audit.course.pipelines import read_pipeline
from kernel_audit.matrix.loading import as_keywords, load_module, sources
from kernel_audit.program import CandidateRaised, capture
from kernel_audit.program.opened_door import changeable_answers

DEVICE_KIND = "TPU v5 lite"


@contextlib.contextmanager
def loaded(
    steps: Any, *, folder: str, file: str, name: str, parameters: Mapping[str, Any]
) -> Iterator[Callable[..., Any] | None]:
    """The function of a model file, None when there is none. Step "import" tells what its import raised, "signature" how it
    can be called. It and the step "sources", at the end, tell the files that were read and the modules that were loaded:
    a function may import when it is called.
    """
    module = None
    before = set(sys.modules)
    read = watch_reading()
    with told_step(steps, "import") as told:
        module = load_module(FunctionRef(file=file, name=name), [Path(folder)])
    with told_step(steps, "signature") as told:
        function = getattr(module, name, None)
        told["sources"], told["read"] = sources(before), sorted(read)
        told["callable"] = callable(function)
        told["signature"] = _signature(function, parameters) if callable(function) else ""
    yield function if callable(function) else None
    with told_step(steps, "sources") as told:
        told["sources"], told["read"] = sources(before), sorted(read)


def watch_reading() -> set[str]:
    """Paths of Python files that this process opens from now on, whatever becomes of them; for the rest of the process."""
    read: set[str] = set()

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str) and arguments[0].endswith((".py", ".pyc")):
            read.add(arguments[0])

    sys.addaudithook(note)
    return read


def try_kernel(
    steps: Any,
    *,
    folder: str,
    file: str,
    name: str,
    parameters: Mapping[str, Any],
    neighbours: list[dict[str, Any]],
    calls: list[dict[str, Any]],
    pipelines: list[dict[str, Any]],
) -> None:
    """Traces the neighbours of what is refused, calls the function on fresh values, and reads its pipelines.

    Steps: "neighbour:NAME", "call:NAME" (array "out"), "pipeline:NUMBER".
    """
    model = {"folder": folder, "file": file, "name": name, "parameters": parameters}
    with changeable_answers("tpu", DEVICE_KIND), loaded(steps, **model) as function:
        if function is not None:
            _trace_and_call(steps, function, name, neighbours, calls)
            for number, each in enumerate(pipelines):
                with told_step(steps, f"pipeline:{number}") as told:
                    program = _captured(function, each)
                    told.update(read_pipeline(program))


def _trace_and_call(
    steps: Any, function: Callable[..., Any], name: str, neighbours: list[dict[str, Any]], calls: list[dict[str, Any]]
) -> None:
    for each in neighbours:
        with told_step(steps, f"neighbour:{each['name']}"):
            _captured(function, each)
    for each in calls:
        arrays: dict[str, np.ndarray] = {}
        with told_step(steps, f"call:{each['name']}", arrays):
            operands = fresh_operands(name, each["shape"], each["dtype"], each["seed"])
            arrays["out"] = np.asarray(function(*map(jax.numpy.asarray, operands), **as_keywords(each["keywords"])))


@contextlib.contextmanager
def told_step(steps: Any, name: str, arrays: dict[str, np.ndarray] | None = None) -> Iterator[dict[str, Any]]:
    """A step whose value says what the model's code raised in it: "raised", "kinds", "message", "at" (file:line)."""
    told: dict[str, Any] = {}
    steps.begin(name)
    try:
        yield told
    except CandidateRaised as error:
        told.update(_told(error))
    except (Exception, SystemExit) as error:
        told.update(_told(CandidateRaised(error, where=name)))
    steps.finish(name, told, arrays or None)


def _told(error: CandidateRaised) -> dict[str, Any]:
    return {
        "raised": error.type_name,
        "kinds": list(error.mro),
        "message": error.message[:500],
        "at": error.location,
    }


def _captured(function: Callable[..., Any], wanted: Mapping[str, Any]) -> Any:
    operands = []
    for text in wanted["operands"]:
        dtype, shape = parse_array(text, where=text)
        operands.append(jax.ShapeDtypeStruct(shape, dtype))
    return capture(function, tuple(operands), keywords=as_keywords(wanted["keywords"]), device_kind=DEVICE_KIND)


def _signature(function: Callable[..., Any], parameters: Mapping[str, Any]) -> str:
    """What is wrong with a function's parameters, or nothing. `None` stands for a parameter without a default."""
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ""
    if list(found)[: len(parameters)] != list(parameters):
        return f"({', '.join(found)})"
    for (name, wanted), each in zip(parameters.items(), found.values(), strict=False):
        default = None if each.default is inspect.Parameter.empty else each.default
        default = list(default) if isinstance(default, tuple) else default
        if default != wanted or isinstance(default, bool) != isinstance(wanted, bool):
            return f"{name}={each.default!r}" if default is not None else f"{name} without a default"
    return ""
