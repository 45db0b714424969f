"""Every private JAX name and every difference between JAX versions, in one place.

Supported: 0.9.2 up to, not including, 0.13. What a version is known to do wrong stands in `KNOWN_FAULTS` and is
refused by name (known.py). No other module of this package imports from `jax._src`, except interpreter_hooks.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import jax
from jax import export as jax_export
from jax._src import callback, core
from jax._src.interpreters import partial_eval
from jax._src.pallas import core as pallas_core
from jax._src.pallas.mosaic.interpret import interpret_pallas_call as interpreter
from jax.experimental.pallas import tpu as pltpu

from kernel_audit.errors import EnvironmentFault

FIRST_VERSION = (0, 9, 2)
FIRST_UNSUPPORTED = (0, 13, 0)

# ---------------------------------------------------------------- versions


@dataclasses.dataclass(frozen=True)
class KnownFault:
    """Something that jax versions from `first` to before `fixed` do wrong, silently."""

    name: str
    first: tuple[int, ...]
    fixed: tuple[int, ...]
    primitive: str
    mode: str
    what: str


KNOWN_FAULTS = (
    KnownFault(
        name="generic-core-map-zeros",
        first=(0, 9, 2),
        fixed=(0, 10, 0),
        primitive="core_map",
        mode="generic",
        what="the generic interpreter returns zeros for a kernel made by pl.kernel or pl.core_map",
    ),
)


def jax_version() -> tuple[int, ...]:
    """The running JAX version as numbers; a suffix such as `.dev1` or `rc0` is left out."""
    numbers = re.match(r"\d+(\.\d+)*", jax.__version__)
    assert numbers is not None, jax.__version__
    return tuple(int(part) for part in numbers.group().split("."))


def require_supported_jax() -> None:
    """Raises EnvironmentFault below 0.9.2 and from 0.13 on."""
    if FIRST_VERSION <= jax_version() < FIRST_UNSUPPORTED:
        return
    raise EnvironmentFault(
        "this JAX version is not supported",
        stage="capture",
        where="the environment",
        expected="jax >= 0.9.2, < 0.13",
        got=f"jax {jax.__version__}",
        next_command='pip install "jax>=0.9.2,<0.13"',
    )


# ---------------------------------------------------------------- jaxprs

OpenJaxpr = core.Jaxpr
ClosedJaxpr = getattr(core, "ClosedJaxpr", core.Jaxpr)  # one class from 0.11 on; the old name is gone in 0.12
Literal = core.Literal
Var = core.Var
Tracer = core.Tracer
AbstractValue = core.AbstractValue

# Every primitive that carries `interpret`: `core_map` is `pl.kernel` up to 0.10, `mpmd_map` from 0.11 on.
KERNEL_PRIMITIVES = frozenset({"pallas_call", "core_map", "mpmd_map"})


def is_jaxpr(value: Any) -> bool:
    return isinstance(value, (OpenJaxpr, ClosedJaxpr))


def open_jaxpr(jaxpr: Any) -> Any:
    """The jaxpr with `eqns`, `invars` and `constvars`, whether or not constants are attached."""
    return getattr(jaxpr, "jaxpr", jaxpr)


def constants(jaxpr: Any) -> Sequence[Any]:
    """The values attached to `constvars`; none for an open jaxpr of a version that has two classes."""
    return getattr(jaxpr, "consts", ())


def evaluate(jaxpr: Any, leaves: Sequence[Any]) -> list[Any]:
    return core.eval_jaxpr(open_jaxpr(jaxpr), constants(jaxpr), *leaves)


def rebuilt(jaxpr: Any, equations: Sequence[Any], effects: set[Any]) -> Any:
    """`jaxpr` with other equations and effects, of the class that it had."""
    if ClosedJaxpr is not OpenJaxpr and isinstance(jaxpr, ClosedJaxpr):
        return jaxpr.replace(jaxpr=jaxpr.jaxpr.replace(eqns=list(equations), effects=effects))
    return jaxpr.replace(eqns=list(equations), effects=effects)


def dma_destination(equation: Any) -> Any:
    """The variable of the reference that a `dma_start` equation writes.

    Up to 0.10 the flat operands are (source, indices, destination, indices, ...); later versions keep a reference and
    its indices in one node, so that the destination is the second entry. Told apart by the node type: unflattening
    would run checks on index objects.
    """
    entries = equation.params["tree"].children()
    node = entries[1].node_data()
    before_destination = entries[:2] if node is not None and node[0] is tuple else entries[:1]
    return equation.invars[sum(entry.num_leaves for entry in before_destination)]


def is_semaphore(aval: Any) -> bool:
    """Whether a reference holds semaphores and not data."""
    return jax.dtypes.issubdtype(aval.dtype, pallas_core.semaphore_dtype)


# ---------------------------------------------------------------- interpreters

HOST_EFFECTS = frozenset({callback._IOEffect, callback._OrderedIOEffect})


def interpret_effects(interpret: Any) -> set[Any]:
    """The effects that a kernel equation must show when it runs with this `interpret` value."""
    return set(pallas_core.get_interpret_effects(interpret))


def interpreter_params(
    *,
    detect_races: bool,
    vector_clock_size: int,
    uninitialized_memory: str,
    dma_execution_mode: str,
    random_seed: int | None,
    num_cores: int,
) -> Any:
    """`pltpu.InterpretParams`. From 0.12 on a race is an exception unless asked otherwise: here it is always a flag."""
    known = {field.name for field in dataclasses.fields(pltpu.InterpretParams)}
    on_race = {"on_race": "warn"} if "on_race" in known else {}
    return pltpu.InterpretParams(
        detect_races=detect_races,
        vector_clock_size=vector_clock_size,
        uninitialized_memory=uninitialized_memory,  # type: ignore[arg-type]
        dma_execution_mode=dma_execution_mode,  # type: ignore[arg-type]
        random_seed=random_seed,
        num_cores_or_threads=num_cores,
        **on_race,
    )


@contextlib.contextmanager
def recorded_races() -> Iterator[Callable[[], bool]]:
    """Yields a function that tells whether any kernel run inside found a race.

    JAX keeps the state of the latest kernel only, so a race in the first of two kernels would be lost: every state
    that is made is kept here.
    """
    original = interpreter.RaceDetectionState
    states: list[Any] = []

    def kept(*args: Any, **kwargs: Any) -> Any:
        states.append(original(*args, **kwargs))
        return states[-1]

    interpreter.RaceDetectionState = kept  # type: ignore[misc, assignment]
    try:
        yield lambda: any(state.races_found for state in states)
    finally:
        interpreter.RaceDetectionState = original  # type: ignore[misc]


def reset_interpreter() -> None:
    """Makes the TPU interpreter usable again after an exception, which leaves its global simulated memory as it was."""
    pltpu.reset_tpu_interpret_mode_state()


# ---------------------------------------------------------------- the described device


def chip_answers(device_kind: str, num_cores: int) -> tuple[list[tuple[ModuleType, str, Any]], list[Any]]:
    """What to replace so that Pallas sees `device_kind`, as (module, function name, answer), and the caches of it."""
    if not device_kind.startswith("NVIDIA"):
        tpu = _tpu_info()
        answers = [(tpu, "get_device_kind", device_kind), (tpu, "get_num_device_cores", num_cores)]
        return answers, [tpu.get_tpu_info]
    try:
        from jax._src.pallas.triton import gpu_info
    except ImportError:  # before 0.11 the Triton lowering does not ask for the chip
        return [], []
    answers = [(gpu_info, "get_device_kind", device_kind), (gpu_info, "get_device_platform", "gpu")]
    return answers, [gpu_info.get_gpu_info]


def _tpu_info() -> ModuleType:
    try:
        from jax._src import tpu_info  # 0.11 on
    except ImportError:
        from jax._src.pallas.mosaic import tpu_info
    return tpu_info


# ---------------------------------------------------------------- export

# Locations stay as `file.py:line`, so that a compiler's refusal points into the kernel; folders go.
_LOCATION_SETTINGS = {
    "jax_traceback_in_locations_limit": 0,
    "jax_hlo_source_file_canonicalization_regex": ".*/",
    "jax_include_full_tracebacks_in_locations": False,
}


@contextlib.contextmanager
def folders_left_out() -> Iterator[None]:
    """While open, locations that JAX writes into a module hold no folder of this machine."""
    settings = {name: value for name, value in _LOCATION_SETTINGS.items() if hasattr(jax.config, name)}
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


def allowed_custom_calls(platform: str) -> list[Any]:
    """Custom calls that `jax.export` must be told to let through: Triton's, which it does not know as stable."""
    if platform != "cuda":
        return []
    return [jax_export.DisabledSafetyCheck.custom_call("__gpu$xla.gpu.triton")]


def without_dead_code(jaxpr: Any) -> Any:
    """The open jaxpr without the equations that no result depends on, as `jax.jit` would compile it."""
    opened = open_jaxpr(jaxpr)
    live, _ = partial_eval.dce_jaxpr(opened, [True] * len(opened.outvars))
    return live


def dma_ends(equation: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """((source, its transforms), (destination, its transforms)) of a `dma_start` equation, as variables of the jaxpr.

    Up to 0.10 reference and transforms are neighbours in the flat operands; later they are one `TransformedRef`.
    """
    parts = jax.tree.unflatten(equation.params["tree"], equation.invars)
    if any(hasattr(each, "transforms") for each in parts[:2]):  # one side may be a whole reference
        source, target = ((getattr(each, "ref", each), getattr(each, "transforms", ())) for each in parts[:2])
        return source, target
    node = equation.params["tree"].children()[1].node_data()
    if node is not None and node[0] is tuple:
        return (parts[0], parts[1]), (parts[2], parts[3])
    return (parts[0], ()), (parts[1], ())


def scan_counts(equation: Any) -> tuple[int, int]:
    """(constants, carried values) of a `scan` equation: its first operands. From 0.11 on a tree holds the counts."""
    parameters = equation.params
    if "num_consts" in parameters:
        return parameters["num_consts"], parameters["num_carry"]
    consts, carry, _ = parameters["ft_in"].unpack()
    return len(consts), len(carry)


def pipeline_allocator() -> tuple[ModuleType, str]:
    """The module and name of the function that every `emit_pipeline` asks for its buffers; private from 0.10 on."""
    from jax._src.pallas.mosaic import pipeline

    name = "make_pipeline_allocations"
    return pipeline, name if hasattr(pipeline, name) else f"_{name}"


def lowers_on_tpu(primitive: Any) -> bool | None:
    """Whether this JAX knows how to lower a primitive for a TPU's TensorCore; None where its table is not where it was."""
    try:
        from jax._src.pallas.mosaic import lowering

        rules = lowering.lowering_rules
        table = next(each for core_type, each in rules.items() if getattr(core_type, "name", "") == "TC")
    except (ImportError, AttributeError, StopIteration):
        return None
    return primitive in table
