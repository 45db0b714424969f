"""Everything stated: modes, a tuple of results, integers, an oracle and a control from a file of its own."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from kernel_audit import audit, baseline, control, exact, refuse, row_permutation, step_time, values

Pair = tuple[Any, Any]


def oracle(x: np.ndarray, shift: np.ndarray, *, negate: bool) -> Pair:
    return (-x if negate else x) + shift.astype(x.dtype), shift + np.int32(1)


def plain(x: jax.Array, shift: jax.Array, *, negate: bool) -> Pair:
    return (-x if negate else x) + shift.astype(x.dtype), shift + 1


def body(x_ref: Any, shift_ref: Any, out_ref: Any, next_ref: Any, *, negate: bool) -> None:
    x = x_ref[...]
    out_ref[...] = (-x if negate else x) + shift_ref[...].astype(x.dtype)
    next_ref[...] = shift_ref[...] + 1


def launched(kernel: Any, x: jax.Array, shift: jax.Array, rows: int) -> Pair:
    m, n = x.shape
    block = pl.BlockSpec((rows, n), lambda i: (i, 0))
    shapes = (jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct(x.shape, jnp.int32))
    call = pl.pallas_call(kernel, shapes, grid=(pl.cdiv(m, rows),), in_specs=[block, block], out_specs=(block, block))
    return call(x, shift)


@audit(
    baselines=[baseline(plain, strong="one fused loop")],
    args=["x: f32[m=20, n=128]", "shift: i32[m, n]"],
    results=["out: f32[m, n]", "next: i32[m, n]"],
    vary={"m": any},
    modes={"negate": [False, True]},
    tuning={"rows": [8]},
    agreement=exact(),
    oracle=oracle,
    controls=[control("shift-forgotten", "wrong_variants.py:shift_forgotten")],
    values=values("normal", "integers", "fresh"),
    invariants=[row_permutation("m")],
    refuses=[refuse("float-shift", shift="f32[20,128]", negate=False, rows=8, raises=TypeError, names=["float32"])],
    worth=step_time(None, 0.02),
)
@functools.partial(jax.jit, static_argnames=("negate", "rows"))
def shift_and_step(x: jax.Array, shift: jax.Array, *, negate: bool, rows: int) -> Pair:
    if shift.dtype != jnp.int32:
        raise TypeError(f"shift must be int32, not {shift.dtype}")
    return launched(functools.partial(body, negate=negate), x, shift, rows)
