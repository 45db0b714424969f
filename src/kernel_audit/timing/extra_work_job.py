"""Makes the programs of the calibrated study as bytes; the timing processes load only those."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from kernel_audit.program import Generic, capture
from kernel_audit.timing.extra_work import ELEMENTS


def export_chains(steps: Any, *, lengths: list[int]) -> None:
    """One program for each length: Newton's iteration for a square root, so many steps of it."""
    for length in lengths:
        steps.begin(str(length))
        program = capture(chain(length), (jax.ShapeDtypeStruct((ELEMENTS,), np.dtype("float32")),))
        steps.finish(str(length), program.digest, {"bytes": np.frombuffer(program.export(Generic()), np.uint8)})


def chain(length: int) -> Any:
    """x -> an estimate of sqrt(x) after `length` steps."""

    def program(x: jax.Array) -> jax.Array:
        def step(_: int, estimate: jax.Array) -> jax.Array:
            return 0.5 * (estimate + x / estimate)

        return jax.lax.fori_loop(0, length, step, jnp.ones_like(x))

    return program
