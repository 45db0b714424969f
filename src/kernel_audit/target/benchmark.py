"""Timings on a real target: compiled apart, warmed up, each sample waited for.

The boundary is that of a caller: logical inputs that lie on the device already, to a logical output that is complete. What a
wrapper pads and crops is inside, compilation and the placement of inputs are outside.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from kernel_audit.target.devices import devices_of, lies_on

BOUNDARY = (
    "from logical inputs already placed on the device to a synchronised logical output; padding and cropping inside, "
    "compilation and placement outside"
)
WARM_UPS = 5
LEAST_REPEATS = 5


def target_benchmark(
    candidate: Callable[..., Any], baseline: Callable[..., Any], args: Sequence[Any], repeats: int = 20
) -> dict[str, Any]:
    """`candidate(*args)` and `baseline(*args)` timed on a TPU, `repeats` samples each after five warm-ups.

    Gives for "candidate" and "baseline" a dict of `compile_seconds`, `samples_ms`, `median_ms` and `p90_ms`, beside them
    `actual_backend`, `device_kind` and `boundary`. A sample ends when every leaf of the output is complete.

    Before anything is compiled or timed it raises RuntimeError without a TPU backend or with an input that does not lie
    on a TPU, and ValueError for `repeats` that are no whole number of five or more.
    """
    return benchmark_on("tpu", candidate, baseline, args, repeats)


def benchmark_on(
    target: str,
    candidate: Callable[..., Any],
    baseline: Callable[..., Any],
    args: Sequence[Any],
    repeats: int = 20,
) -> dict[str, Any]:
    """`target_benchmark` for a `target` of "tpu" or "gpu"."""
    _require_placed(target, args)
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < LEAST_REPEATS:
        raise ValueError(f"repeats must be a whole number of {LEAST_REPEATS} or more, got {repeats!r}")
    sides = {"candidate": candidate, "baseline": baseline}
    kinds = sorted({each.device_kind for each in devices_of(args) or []})
    return {
        **{name: _timed(function, args, repeats) for name, function in sides.items()},
        "actual_backend": jax.default_backend(),
        "device_kind": ", ".join(kinds),
        "boundary": BOUNDARY,
    }


def _require_placed(target: str, args: Sequence[Any]) -> None:
    if lies_on(target, args):
        return
    name = target.upper()
    error = RuntimeError(f"{name} benchmark requires real {name} inputs; interpretation timings are not accepted")
    lying = sorted({str(each) for each in devices_of(args) or []})
    error.add_note(f"found backend {jax.default_backend()!r}, inputs on {', '.join(lying) or 'no device'}")
    raise error


def _timed(function: Callable[..., Any], args: Sequence[Any], repeats: int) -> dict[str, Any]:
    """One side; seconds for the compilation, milliseconds for each sample."""
    started = time.perf_counter()
    compiled = jax.jit(function).lower(*args).compile()
    compile_seconds = time.perf_counter() - started
    for _ in range(WARM_UPS):
        jax.block_until_ready(compiled(*args))
    samples_ms = []
    for _ in range(repeats):
        started = time.perf_counter()
        jax.block_until_ready(compiled(*args))
        samples_ms.append((time.perf_counter() - started) * 1e3)
    return {
        "compile_seconds": compile_seconds,
        "samples_ms": samples_ms,
        "median_ms": float(np.median(samples_ms)),
        "p90_ms": float(np.percentile(samples_ms, 90)),
    }
