"""Candidates that fail by themselves, or end their worker, before any compiler is asked."""

import os
import sys
import time

import jax
import jax.numpy as jnp

from kernel_audit import audit

HERE = {"args": ["x: f32[n=8, d=128]"], "targets": ["tpu:v5e"]}


def shapes_mixed_up(x):
    return jnp.zeros(3) + jnp.zeros(4)


@audit(**HERE)
def mistaken(x):
    return None + 1


@audit(baselines=[shapes_mixed_up], **HERE)
def stops(x):
    sys.exit(0)


@audit(tuning={"rows": [8, 12]}, **HERE)
def guards(x, rows):
    raise ValueError(f"rows: {rows}")


@audit(**HERE)
def ends(x):
    os._exit(0)


@audit(**HERE)
def hangs(x):
    time.sleep(600)


@audit(**HERE)
def patches(x):
    jax.jit = None
    return x
