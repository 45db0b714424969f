"""Small audits for the compilers of described targets: faults that they name, and idioms that hide a kernel."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from kernel_audit import audit

GRID = pltpu.CompilerParams(dimension_semantics=("arbitrary",))


def _doubled(x_ref, out_ref):
    out_ref[...] = 2.0 * x_ref[...]


def _over_rows(body, x, rows, **options):
    block = pl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
    return pl.pallas_call(
        body, grid=(x.shape[0] // rows,), in_specs=[block], out_specs=block, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        **options,
    )(x)  # fmt: skip


@audit(args=["x: f32[n=64, d=128]"], targets=["tpu:v5e"])
def honest(x):
    return _over_rows(_doubled, x, 8)


@audit(args=["x: f32[n=32768, d=2048]"], targets=["tpu:v5e"])
def too_much_vmem(x):
    return _over_rows(_doubled, x, 8192)


@audit(args=["x: f32[n=12, d=200]"], targets=["tpu:v5e"])
def misaligned(x):
    return _over_rows(_doubled, x, 4)


@audit(args=["x: f32[n=8, d=128]"], targets=["tpu:v5e"])
def sorts(x):
    def body(x_ref, out_ref):
        out_ref[...] = jnp.sort(x_ref[...], axis=1)

    return _over_rows(body, x, 8)


@audit(args=["x: f32[n=4096, d=512]"], targets=["tpu:v5e"])
def spills(x):
    def body(x_ref, out_ref):
        columns = jnp.sum(x_ref[...], axis=0, keepdims=True)
        rows = jnp.sum(x_ref[...] * columns, axis=1, keepdims=True)
        out_ref[...] = x_ref[...] * rows * jnp.sum(x_ref[...] * rows, axis=0, keepdims=True)

    return _over_rows(body, x, 1024)


@audit(args=["x: f32[n=64, d=128]"], targets=["tpu:v5e"])
def reads_backend(x):
    return _over_rows(_doubled, x, 8, interpret=jax.default_backend() != "tpu")


@audit(args=["x: f32[n=64, d=128]"], targets=["tpu:v5e"])
def unused(x):
    _over_rows(_doubled, x, 8)
    return x + 1.0


def plain_attention(x):
    """Plain softmax attention, unmasked, of 8 heads over 2,048 rows: the TPU compiler makes a call of its own of it."""
    scores = jnp.einsum("hqd,hkd->hqk", x, x)
    return jnp.einsum("hqk,hkd->hqd", jax.nn.softmax(scores, axis=-1), x)


@audit(args=["x: f32[h=8, t=2048, d=128]"], baselines=[plain_attention], targets=["tpu:v5e"])
def heads_doubled(x):
    block = pl.BlockSpec((1, *x.shape[1:]), lambda i: (i, 0, 0))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(_doubled, grid=(x.shape[0],), in_specs=[block], out_specs=block, out_shape=shape)(x)
