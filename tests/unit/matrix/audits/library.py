"""A library's kernel as the baseline, which cannot be lifted; and oracles that are none."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax.experimental import pallas as pl

from kernel_audit import audit, step_time


def body(x_ref: Any, out_ref: Any) -> None:
    out_ref[...] = x_ref[...] * 2


def library(x: jax.Array) -> jax.Array:
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


def plain(x: jax.Array) -> jax.Array:
    return x * 2


def raising(x: np.ndarray) -> np.ndarray:
    raise ValueError("not today")


def of_two(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x * 2, x


def of_nothing(x: np.ndarray) -> None:
    return None


def double(x: jax.Array) -> jax.Array:
    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)


args, worth = ["x: f32[m=8, n=128]"], step_time(None, 0.0)
audit(name="unlifted", candidate="library.py:double", baselines=[library], args=args, worth=worth)
for oracle in (raising, of_two, of_nothing):
    name = oracle.__name__.replace("_", "-")
    audit(name=name, candidate="library.py:double", baselines=[plain], oracle=oracle, args=args, worth=worth)
