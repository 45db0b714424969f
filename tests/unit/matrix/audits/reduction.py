"""A tree of results, one of them a scalar: a sum of terms that cancel."""

from __future__ import annotations

from typing import Any

import jax
from jax.experimental import pallas as pl

from kernel_audit import audit, step_time


def plain(x: jax.Array) -> dict[str, jax.Array]:
    return {"sum": x.sum(), "largest": x.max(axis=0)}


def _body(x_ref: Any, sum_ref: Any, largest_ref: Any) -> None:
    sum_ref[0, 0] = x_ref[...].sum()
    largest_ref[...] = x_ref[...].max(axis=0)


@audit(baselines=[plain], args=["x: f32[m=20, n=128]"], vary={"m": any}, worth=step_time(None, 0.0))
def reduction(x: jax.Array) -> dict[str, jax.Array]:
    shapes = (jax.ShapeDtypeStruct((1, 1), x.dtype), jax.ShapeDtypeStruct((x.shape[1],), x.dtype))
    total, largest = pl.pallas_call(_body, out_shape=shapes)(x)
    return {"sum": total[0, 0], "largest": largest}
