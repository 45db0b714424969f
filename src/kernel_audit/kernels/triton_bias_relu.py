"""max(x + bias, 0) for a GPU: one Triton program for each block of the matrix, tails by masks."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from .preconditions import require_gpu, require_matrix_and_bias, require_mode, require_triton_block
from .triton_block import inside, launch

__all__ = ["triton_bias_relu"]


def triton_bias_relu(
    x: jax.Array,
    bias: jax.Array,
    block: tuple[int, int] = (16, 64),
    mode: str = "interpret",
) -> jax.Array:
    """max(x + bias, 0) for a matrix (m, n) and a bias (n,) of one dtype, float32 or bfloat16; the result is like x.

    Arithmetic is float32 with one cast at the end; NaN stays NaN. `block` (rows, columns) are powers of two; no operand is
    padded. Mode "interpret" runs in the generic interpreter, wherever it is; mode "gpu" runs on a GPU and nowhere else.

    Raises ValueError, before launch, for a bias of another length, for operands that are empty, of another rank or dtype,
    and for a block or mode that is not supported; RuntimeError in mode "gpu" without a GPU or without operands on it.
    """
    require_matrix_and_bias(x, bias)
    require_triton_block(block)
    require_mode(mode, off_target="interpret", target="gpu")
    if mode == "gpu":
        require_gpu(x, bias)
    block = (block[0], block[1])
    specs = (pl.BlockSpec(block, lambda i, j: (i, j)), pl.BlockSpec((block[1],), lambda i, j: (j,)))
    body = functools.partial(_bias_relu_block, x.shape, block)
    return launch(body, (x, bias), specs, block, name="triton_bias_relu", interpret=mode == "interpret")


def _bias_relu_block(shape: tuple[int, int], block: tuple[int, int], x_ref, bias_ref, out_ref) -> None:
    """One block. The larger of sum and zero would be zero for NaN on a GPU, so that NaN is chosen by name."""
    mask = inside(shape, block)
    columns = pl.program_id(1) * block[1] + jax.lax.broadcasted_iota(jnp.int32, (block[1],), 0)
    x = plgpu.load(x_ref, mask=mask, other=0).astype(jnp.float32)
    bias = plgpu.load(bias_ref, mask=columns < shape[1], other=0).astype(jnp.float32)
    total = x + bias[None, :]
    positive = jnp.where(total != total, total, jnp.maximum(total, 0.0))
    plgpu.store(out_ref, positive.astype(out_ref.dtype), mask=mask)
