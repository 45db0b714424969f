"""The complete step of an audit with one side in the candidate's place, compiled for the devices at hand. In a worker."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding

from kernel_audit.contract import Audit, FunctionRef, Operand, Workload, reference_to
from kernel_audit.errors import AuditFileError, EnvironmentFault, near
from kernel_audit.matrix.loading import as_keywords, load_function
from kernel_audit.profile.hlo_text import anonymous
from kernel_audit.program import Generic, capture, claimed_backend
from kernel_audit.program.compat import evaluate
from kernel_audit.records import ColdTimes
from kernel_audit.records.profile import LOCAL

AXIS = "data"
CANDIDATE = "candidate"
ELEMENTS = 1 << 22  # the most of one operand where the audit states no sizes for a CPU
Local = Callable[..., Any]


@dataclass(frozen=True)
class Asked:
    """Which step: the side in the candidate's place (a baseline's name, "candidate", or "" for the first baseline), and
    the sizes that are not the workload's.
    """

    side: str = ""
    devices: int = 8
    dims: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class PlacedStep:
    """A step as a function of the audit's operands, with where they lie. `host` holds the operands' values on the host; `state`
    names those that stay on the devices from step to step, the others are staged in every step."""

    name: str
    side: str
    function: Callable[..., Any]
    local: Local
    made: Callable[[Local], Callable[..., Any]]
    names: tuple[str, ...]
    host: tuple[np.ndarray, ...]
    shardings: tuple[NamedSharding, ...]
    state: frozenset[str]
    dims: dict[str, int]
    region: str
    mesh: Mesh

    def specs(self) -> list[jax.ShapeDtypeStruct]:
        """The operands' shapes, dtypes and shardings."""
        return [
            jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=lay)
            for each, lay in zip(self.host, self.shardings, strict=True)
        ]

    def with_local(self, local: Local) -> Callable[..., Any]:
        """The same step with something else in the candidate's place."""
        return self.made(local)


@dataclass(frozen=True)
class CompiledStep:
    """The step compiled ahead of time, its text without source locations, and what that took."""

    call: Any
    text: str
    cold: ColdTimes


def placed_step(audit: Audit, roots: Sequence[Path], asked: Asked) -> PlacedStep:
    """Raises AuditFileError for an audit without a step and for an unknown side, EnvironmentFault for too few devices."""
    step, workload = _step_of(audit)
    mesh = _mesh(asked.devices)
    operands = workload.operands if workload else audit.operands
    dims = _dims(audit, workload, operands, asked)
    local, side = _local(audit, roots, asked.side)
    factory = load_function(step, roots)
    options: dict[str, Any] = dict(as_keywords(workload.options)) if workload else {}
    examples = workload.examples if workload else None
    counts = None
    if examples and dims[examples] % asked.devices:
        counts = _counts(dims[examples], asked.devices)
    if "counts" in inspect.signature(factory).parameters:
        options["counts"] = counts
    region = workload.region if workload else LOCAL

    def made(function: Local) -> Callable[..., Any]:
        whole = factory(_labelled(function, region), mesh, **options)[0]
        return _interpreted(whole) if side == CANDIDATE and jax.default_backend() == "cpu" else whole

    specs = factory(local, mesh, **options)[1]
    host = _values(audit, workload, operands, dims, roots)
    if counts is not None:
        host = tuple(
            _laid(values, each.dims.index(examples), counts) if examples in each.dims else values
            for each, values in zip(operands, host, strict=True)
        )
    shardings = tuple(NamedSharding(mesh, spec) for spec in specs)
    names = tuple(each.name for each in operands)
    whole = [name for name, lay in zip(names, shardings, strict=True) if lay.is_fully_replicated]
    state = frozenset(workload.state if workload else whole)
    return PlacedStep(step.text, side, made(local), local, made, names, host, shardings, state, dims, region, mesh)


def compiled_step(step: PlacedStep, function: Callable[..., Any] | None = None) -> CompiledStep:
    """Traced, lowered and compiled, each timed. Another `function` of the same operands: a twin of the step."""
    jitted = jax.jit(function or step.function)
    # Not with source locations left out: names of regions go with them. The text is cleaned instead.
    began = time.perf_counter()
    traced = jitted.trace(*step.specs())
    traced_at = time.perf_counter()
    lowered = traced.lower()
    lowered_at = time.perf_counter()
    compiled = lowered.compile()
    done = time.perf_counter()
    cold = ColdTimes(trace_s=traced_at - began, lower_s=lowered_at - traced_at, compile_s=done - lowered_at)
    return CompiledStep(compiled, anonymous(compiled.as_text()), cold)


def _step_of(audit: Audit) -> tuple[FunctionRef, Workload | None]:
    if audit.workload is not None:
        return audit.workload.step, audit.workload
    if audit.worth.step:
        return reference_to(audit.worth.step, where="worth: step"), None
    raise AuditFileError(
        "the audit names no complete step, so there is nothing to profile",
        stage="profile",
        where="workload",
        expected='workload=complete_step("train.py:step", ...), or worth=step_time("train.py:step", margin)',
        got=f"worth: {audit.worth.objective}, in no step",
        next_command="see docs/profile.md",
    )


def _mesh(devices: int) -> Mesh:
    found = jax.devices()
    if len(found) < devices:
        raise EnvironmentFault(
            "fewer devices than the step is to run on",
            stage="profile",
            where=f"--devices {devices}",
            expected=f"{devices} devices",
            got=f"{len(found)} of platform {jax.default_backend()}",
        )
    return Mesh(np.array(found[:devices]), (AXIS,), axis_types=(AxisType.Auto,))


def _dims(audit: Audit, workload: Workload | None, operands: Sequence[Operand], asked: Asked) -> dict[str, int]:
    """Sizes that a CPU can run: those asked for, else the workload's, else the declared ones, the longest halved until they
    do.
    """
    declared = dict(workload.dims) if workload else dict(audit.declared_dims)
    for name in asked.dims:
        if name not in declared:
            raise AuditFileError(
                "no such dimension",
                stage="profile",
                where=f"--dims {name}={asked.dims[name]}",
                expected="one of " + ", ".join(declared),
                got=near(name, declared),
            )
    dims = {**declared, **asked.dims}
    if workload is None:
        while max(int(np.prod(each.shape(dims))) for each in operands) > ELEMENTS:
            longest = max((each for each in dims if each not in asked.dims), key=lambda each: dims[each], default=None)
            if longest is None:
                break
            dims[longest] //= 2
    return dims


def _local(audit: Audit, roots: Sequence[Path], side: str) -> tuple[Local, str]:
    """(function on one device's shard, its name)."""
    if side == CANDIDATE:
        return _configured(load_function(audit.candidate, roots), audit), CANDIDATE
    names = [each.name for each in audit.baselines]
    chosen = next((each for each in audit.baselines if each.name == (side or each.name)), None)
    if chosen is None:
        raise AuditFileError(
            "no such side to put into the step",
            stage="profile",
            where=f"--side {side}",
            expected="one of " + ", ".join([CANDIDATE, *names]),
            got=near(side, [CANDIDATE, *names]) if side else "no baseline in the audit",
        )
    return load_function(chosen.function, roots), chosen.name


def _configured(function: Local, audit: Audit) -> Local:
    """The candidate in the first mode and configuration for the devices' kind of target."""
    kind = "gpu" if jax.default_backend() == "gpu" else "tpu"
    configurations = audit.configurations_for(kind) or audit.configurations() or [{}]
    modes = {name: choices[0] for name, choices in audit.modes.items()}
    keywords = as_keywords(modes, audit.fixed, configurations[0])
    made, left = (function(**keywords), {}) if audit.candidate.factory else (function, keywords)

    def configured(*shards: Any) -> Any:
        with claimed_backend(kind):
            return made(*shards, **left)

    return configured


def _interpreted(step: Callable[..., Any]) -> Callable[..., Any]:
    """A whole step with its kernels in the generic interpreter: values and shapes, never a kernel's time. Set after the
    step was traced, as a rule for gradients keeps the mode that its author wrote.
    """

    def interpreted(*operands: Any) -> Any:
        specs = tuple(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in operands)
        program = capture(step, specs)
        return jax.tree.unflatten(program.out_tree, evaluate(program.in_mode(Generic()), operands))

    return interpreted


def _labelled(function: Local, region: str) -> Local:
    """`function` with its region's name on everything that it does."""

    def local(*shards: Any) -> Any:
        with jax.named_scope(f"region.{region}"):
            return function(*shards)

    return local


def _counts(examples: int, devices: int) -> tuple[int, ...]:
    """As even as can be, the longer shards first."""
    least, more = divmod(examples, devices)
    return tuple(least + (index < more) for index in range(devices))


def _laid(values: np.ndarray, axis: int, counts: Sequence[int]) -> np.ndarray:
    """Examples split by `counts`, each device's part filled up with zeros to the longest."""
    parts = np.split(values, np.cumsum(counts)[:-1], axis=axis)
    filled = []
    for part in parts:
        widths = [(0, 0)] * values.ndim
        widths[axis] = (0, max(counts) - part.shape[axis])
        filled.append(np.pad(part, widths))
    return np.concatenate(filled, axis=axis)


def _values(
    audit: Audit, workload: Workload | None, operands: Sequence[Operand], dims: dict[str, int], roots: Sequence[Path]
) -> tuple[np.ndarray, ...]:
    """The operands, as the workload makes them; else standard normal, in order, from its seed."""
    rng = np.random.default_rng(workload.seed if workload else 0)
    binding = audit.dtype_bindings()[0]
    given: dict[str, Any] = {}
    if workload is not None and workload.inputs is not None:
        given = load_function(workload.inputs, roots)(rng, dims)
    made = []
    for each in operands:
        dtype = jax.numpy.dtype(binding.get(each.dtype, each.dtype))
        values = given[each.name] if each.name in given else rng.standard_normal(each.shape(dims))
        made.append(np.asarray(values).astype(dtype))
    return tuple(made)
