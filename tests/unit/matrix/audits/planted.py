"""Candidates under the contract of rms_norm.py: each with one fault, and one honest other way."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from rms_norm import body, launched  # the folder of an audit is on the import path of its workers


def _early(x_ref: Any, g_ref: Any, out_ref: Any) -> None:
    wide = x_ref[...].astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    out_ref[...] = (wide * scale).astype(jnp.bfloat16) * g_ref[...].astype(jnp.bfloat16)


def rounded_early(x: jax.Array, g: jax.Array, *, rows: int) -> jax.Array:
    return launched(_early, x, g, rows)


def _narrow(x_ref: Any, g_ref: Any, out_ref: Any) -> None:
    x = x_ref[...]
    scale = jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + jnp.bfloat16(1e-6))
    out_ref[...] = (x * scale * g_ref[...]).astype(out_ref.dtype)


def narrow_arithmetic(x: jax.Array, g: jax.Array, *, rows: int) -> jax.Array:
    return launched(_narrow, x, g, rows)


def last_block_forgotten(x: jax.Array, g: jax.Array, *, rows: int) -> jax.Array:
    return launched(body, x, g, rows, steps=max(x.shape[0] // rows, 1))


def tuning_changes_the_result(x: jax.Array, g: jax.Array, *, rows: int) -> jax.Array:
    return launched(body, x, g * (1.0 if rows == 8 else 1.03125), rows)


def plain_instead(x: jax.Array, g: jax.Array, *, rows: int) -> jax.Array:
    wide = x.astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + 1e-6)
    return (wide * scale * g).astype(x.dtype)


def _reordered(x_ref: Any, g_ref: Any, out_ref: Any) -> None:
    wide = x_ref[...].astype(jnp.float32)
    total = jnp.zeros(wide.shape[:-1], jnp.float32)
    for part in jnp.split(wide, wide.shape[-1] // 64, axis=-1):
        total = total + (part * part).sum(-1)
    scale = 1.0 / jnp.sqrt(total / wide.shape[-1] + 1e-6)
    out_ref[...] = (wide * (g_ref[...] * scale[:, None])).astype(out_ref.dtype)


@jax.jit
def _rows_of_eight(x: jax.Array, g: jax.Array) -> jax.Array:
    """Every block in a scan of its own launch, x padded to whole blocks."""
    t, d = x.shape
    blocks = jnp.pad(x, ((0, -t % 8), (0, 0))).reshape(-1, 8, d)
    call = pl.pallas_call(_reordered, out_shape=jax.ShapeDtypeStruct((8, d), x.dtype))
    return jax.lax.map(lambda block: call(block, g), blocks).reshape(-1, d)[:t]


def scanned_and_reordered(x: jax.Array, g: jax.Array, *, rows: int) -> jax.Array:
    return _rows_of_eight(x, g)
