"""examples/silu.py with a tail bug: `//` drops the rows after the last whole block. Its audit ends in *revise*."""

import jax
from jax.experimental import pallas as pl

from kernel_audit import audit, step_time


def silu_jnp(x):
    return x * jax.nn.sigmoid(x)


def silu_block(x_ref, out_ref):
    out_ref[...] = x_ref[...] * jax.nn.sigmoid(x_ref[...])


@audit(
    baselines=[silu_jnp],
    args=["x: f32[m=64, n=256]"],
    vary={"m": any},
    worth=step_time(None, 0.02),
)
def silu_rows(x):
    rows = pl.BlockSpec((8, x.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(
        silu_block,
        grid=(x.shape[0] // 8,),
        in_specs=[rows],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
    )(x)
