"""Jobs that run on the device itself: what it is, what it reaches, whether programs are right. No candidate here."""

from __future__ import annotations

import math
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.errors import AuditError, TargetError
from kernel_audit.fixture import seed_of
from kernel_audit.measure.audit_task import distance, expected, task
from kernel_audit.measure.comparison import check_seed
from kernel_audit.program.raised import without_folders
from kernel_audit.records import Ceiling, digest_bytes, digest_of
from kernel_audit.statistics import COPY, PRODUCT, ceiling_per_s
from kernel_audit.timing.loaded import LoadedSide
from kernel_audit.timing.process_job import require_backend, scope_here

COPY_BYTES = {"tpu": 1 << 30, "gpu": 1 << 30, "cpu": 1 << 26}
PRODUCT_SIZE = {"tpu": 8192, "gpu": 8192, "cpu": 512}
WARM_UPS, SAMPLES = 5, 20
BUDGET_SEEDS = 3


def look(steps: Any, *, target: str) -> dict[str, Any]:
    """What is here. Raises TargetError where the backend is not `target`, or has no CPU beside it; nothing is allocated."""
    require_backend(target)
    try:
        jax.local_devices(backend="cpu")
    except RuntimeError:
        raise TargetError(
            "the host's CPU is needed beside the target, to say what results must be",
            stage="target",
            where="this process",
            expected="a backend 'cpu', too",
            got=f"JAX_PLATFORMS={os.environ.get('JAX_PLATFORMS', '')}",
            next_command="leave JAX_PLATFORMS unset",
        ) from None
    return {"scope": msgspec.to_builtins(scope_here()), "driver": _driver(target)}


def ceilings(steps: Any, *, target: str) -> list[dict[str, Any]]:
    """Ceilings of this device: a copy, and matrix products in float32 at HIGHEST and in bfloat16. Plain JAX, compiled apart."""
    require_backend(target)
    values = jnp.zeros((COPY_BYTES[target] // 4,), jnp.float32)
    found = [_ceiling(COPY, "float32", 2 * values.nbytes, lambda x: x + 1, values)]
    del values
    size = PRODUCT_SIZE[target]
    for dtype, precision in (("float32", jax.lax.Precision.HIGHEST), ("bfloat16", jax.lax.Precision.DEFAULT)):
        matrix = jnp.ones((size, size), dtype)
        product = _product(precision)
        found.append(_ceiling(PRODUCT, dtype, 2.0 * size**3, product, matrix))
    return [msgspec.to_builtins(each) for each in found]


def check_programs(
    steps: Any,
    *,
    target: str,
    audit: dict[str, Any],
    dims: dict[str, int],
    binding: dict[str, str],
    programs: list[dict[str, Any]],
    reference: dict[str, Any],
    fixtures: list[str],
    large: bool,
) -> None:
    """One step a program: compiled, run on each fixture, its complete results kept, and how far from the reference.

    Each of `programs` has "id", "role", "name" and "place" (a file of bytes). What it raises is told in "failed"; a process
    that ends leaves its step open. After a failure at stage "run" no other program is tried here: an error of the device, such
    as an illegal address, fails whatever comes after it in its process. "errors" has, for each seed of `normal`, the largest
    distance of each result, "scales" the largest expected value.
    """
    require_backend(target)
    contract = msgspec.convert(audit, Audit)
    made = task(audit=audit, dims=dims, binding=binding, reference=reference, budgets=None, large=large)
    drawn = {str(number): seed_of(str(number), "normal") for number in range(BUDGET_SEEDS)}
    operands: Mapping[str, Any] = _Drawn(made.generate or made.make, drawn)
    if not large:
        operands = dict(operands)
    wanted = {name: expected(reference, given, large=large) for name, given in operands.items()}
    others = {} if large else {name: _operands(contract, dims, binding, name) for name in fixtures}
    steps.begin("inputs")
    drawn_operands = {**others, **{f"normal-{name}": given for name, given in operands.items()}}
    steps.finish("inputs", {name: _digest(given) for name, given in drawn_operands.items()})
    for each in programs:
        steps.begin(each["id"])
        told, arrays = _checked(each, operands, wanted, others)
        steps.finish(each["id"], told, arrays)
        if told.get("failed", {}).get("stage") == "run":
            return


def _digest(given: Any) -> str:
    return digest_of([digest_bytes(np.asarray(leaf).tobytes()) for leaf in given])


class _Drawn(Mapping[str, Any]):
    """Operands by name, made anew whenever they are asked for: sets of gigabytes are not held beside each other."""

    def __init__(self, make: Callable[[int], Any], seeds: dict[str, int]) -> None:
        self._make, self._seeds = make, seeds

    def __getitem__(self, name: str) -> Any:
        return self._make(self._seeds[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._seeds)

    def __len__(self) -> int:
        return len(self._seeds)


def _operands(contract: Audit, dims: dict[str, int], binding: dict[str, str], family: str) -> list[Any]:
    data = task(
        audit=msgspec.to_builtins(contract),
        dims=dims,
        binding=binding,
        reference={},
        budgets=None,
        large=False,
        family=family,
    )
    return list(data.make(check_seed(family)))


def _checked(
    each: dict[str, Any], operands: Mapping[str, Any], wanted: dict[str, Any], others: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    stage = "load"
    try:
        data = Path(each["place"]).read_bytes()
        side = LoadedSide(each["role"], each["name"], data)
        stage = "run"
        told: dict[str, Any] = {
            "compile_s": side.compile_s,
            "side": msgspec.to_builtins(side.record),
            **side.described(),
        }
        errors, scales, arrays = [], [], {}
        for name, given in operands.items():
            results = [np.asarray(leaf) for leaf in side(_placed(side, given))]
            errors.append([_largest(ours, theirs) for ours, theirs in zip(results, wanted[name], strict=True)])
            scales.append([_finite(np.abs(theirs.astype(np.float64))) for theirs in wanted[name]])
            told.setdefault("shapes", [[list(leaf.shape), leaf.dtype.name] for leaf in results])
        for name, given in others.items():
            results = [np.asarray(leaf) for leaf in side(_placed(side, given))]
            arrays |= {f"{name}.{index}": leaf for index, leaf in enumerate(results)}
        return {**told, "errors": errors, "scales": scales}, arrays
    except AuditError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {without_folders(str(error))}"[:600]
        return {"failed": {"stage": stage, "got": text}}, {}


def _placed(side: LoadedSide, given: Any) -> list[jax.Array]:
    where = side.shardings or [jax.local_devices()[0]] * len(given)
    return jax.block_until_ready([jax.device_put(each, at) for each, at in zip(given, where, strict=True)])


def _largest(ours: np.ndarray, theirs: np.ndarray) -> float | None:
    """The largest distance; None for another shape, or where one is not finite."""
    if ours.shape != theirs.shape:
        return None
    return _finite(distance(ours, theirs))


def _finite(values: np.ndarray) -> float | None:
    most = float(np.max(values, initial=0.0))
    return most if math.isfinite(most) else None


def _product(precision: Any) -> Callable[[jax.Array], jax.Array]:
    return lambda matrix: jnp.dot(matrix, matrix, precision=precision)


def _ceiling(kind: str, dtype: str, work: float, function: Callable[..., Any], operand: jax.Array) -> Ceiling:
    compiled = jax.jit(function).lower(operand).compile()
    for _ in range(WARM_UPS):
        jax.block_until_ready(compiled(operand))
    samples = []
    for _ in range(SAMPLES):
        started = time.perf_counter()
        jax.block_until_ready(compiled(operand))
        samples.append(time.perf_counter() - started)
    return Ceiling(kind=kind, dtype=dtype, work=work, samples_s=samples, per_s=ceiling_per_s(work, samples))


def _driver(target: str) -> str:
    """The driver's version, where the system tells it; no name of the machine is in it."""
    if target != "gpu":
        return ""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said[0][:40] if said else ""
