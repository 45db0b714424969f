"""A gradient through a kernel with a rule of its own, inside a scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from kernel_audit import audit, step_time


def _square(x_ref: Any, out_ref: Any) -> None:
    out_ref[...] = x_ref[...] * x_ref[...]


def _slope(x_ref: Any, g_ref: Any, out_ref: Any) -> None:
    out_ref[...] = 2.0 * x_ref[...] * g_ref[...]


@jax.custom_vjp
def square(x: jax.Array) -> jax.Array:
    return pl.pallas_call(_square, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


square.defvjp(
    lambda x: (square(x), x),
    lambda x, g: (pl.pallas_call(_slope, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, g),),
)


def loss(x: jax.Array, one: Callable[[jax.Array], jax.Array]) -> jax.Array:
    def step(carry: jax.Array, row: jax.Array) -> tuple[jax.Array, None]:
        return carry + one(row).sum(), None

    return jax.lax.scan(step, jnp.float32(0), x)[0]


def plain(x: jax.Array) -> jax.Array:
    return jax.grad(loss)(x, lambda row: row * row)


@audit(baselines=[plain], args=["x: f32[s=3, m=8, n=128]"], vary={"s": any}, worth=step_time(None, 0.0))
def gradient(x: jax.Array) -> jax.Array:
    return jax.grad(loss)(x, square)
