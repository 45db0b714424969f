"""An audit of five minutes: no oracle, no results, no agreement, no shapes stated."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from kernel_audit import audit, multiple, step_time


def plain(x: jax.Array, g: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return (wide * scale * g).astype(x.dtype)


def body(x_ref: Any, g_ref: Any, out_ref: Any) -> None:
    wide = x_ref[...].astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    out_ref[...] = (wide * scale * g_ref[...]).astype(out_ref.dtype)


def launched(body: Any, x: jax.Array, g: jax.Array, rows: int, steps: int | None = None) -> jax.Array:
    """The kernel over blocks of whole rows; `steps` is for those who count them wrong."""
    t, d = x.shape
    block = pl.BlockSpec((rows, d), lambda i: (i, 0))
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(pl.cdiv(t, rows) if steps is None else steps,),
        in_specs=[block, pl.BlockSpec((d,), lambda i: (0,))],
        out_specs=block,
    )(x, g)


@audit(
    baselines=[plain],
    args=["x: bf16[t=24, d=128]", "g: f32[d]"],
    vary={"t": any, "d": multiple(128)},
    tuning={"rows": [8, 16]},
    worth=step_time("train.py:step", 0.02),
)
def rms_norm(x: jax.Array, g: jax.Array, *, rows: int) -> jax.Array:
    return launched(body, x, g, rows)
