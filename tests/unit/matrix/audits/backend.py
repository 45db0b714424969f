"""A kernel for GPUs that will not be traced for anything else, and one for both kinds of target."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from kernel_audit import audit, on, step_time


def double(x):
    return x + x


def _kernel(x, name):
    def body(x_ref, out_ref):
        out_ref[...] = 2.0 * x_ref[...]

    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, jnp.float32), name=name)(x)


WORDS = {"baselines": [double], "args": ["x: f32[m=8, n=128]"], "worth": step_time(None, 0.0)}


@audit(**WORDS, tuning=[on("gpu", rows=[16])], targets=["gpu:h200"])
def for_gpus(x, *, rows):
    if jax.default_backend() not in ("gpu", "cpu"):
        raise NotImplementedError("this kernel is for GPUs")
    return _kernel(x, f"rows_{rows}")


@audit(
    **WORDS, tuning=[on("tpu", form=["tpu"], rows=[8, 16]), on("gpu", form=["triton"])], targets=["tpu:v5e", "gpu:h200"]
)
def for_both(x, *, form, rows=1):
    return _kernel(x, f"{form}_{rows}")
