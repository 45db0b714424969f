"""max(x + bias, 0) for a matrix and a bias that follows its columns, one program for each block of the matrix."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from .axpy_block import block_counts, crop, pad_to_blocks
from .preconditions import require_block, require_matrix_and_bias, require_mode, require_tpu

__all__ = ["fused_bias_relu"]

TILE = (8, 128)


def fused_bias_relu(
    x: jax.Array,
    bias: jax.Array,
    block: tuple[int, int] = (8, 128),
    mode: str = "interpret",
) -> jax.Array:
    """max(x + bias, 0) for a matrix (m, n) and a bias (n,) of one dtype, float32 or bfloat16; the result is like x.

    Arithmetic is float32 with one cast at the end; NaN stays NaN. `block` (rows, columns) is a multiple of (8, 128) in
    both modes; operands are padded to whole blocks and the result is cropped. Mode "interpret" runs in the generic
    interpreter, wherever it is; mode "tpu" runs on a TPU and nowhere else.

    Raises ValueError, before launch, for a bias of another length, for operands that are empty, of another rank or
    dtype, and for a block or mode that is not supported; RuntimeError in mode "tpu" without a TPU or without operands
    on it.
    """
    require_matrix_and_bias(x, bias)
    require_block(block, multiple_of=TILE)
    require_mode(mode, off_target="interpret")
    if mode == "tpu":
        require_tpu(x, bias)
    rows, columns = block
    # A row of its own for the bias: every block of the matrix meets the part that lies above its columns.
    x_padded = pad_to_blocks(x, block)
    bias_padded = pad_to_blocks(bias.reshape(1, -1), (1, columns))
    matrix_tile = pl.BlockSpec((rows, columns), lambda i, j: (i, j))
    bias_tile = pl.BlockSpec((1, columns), lambda i, j: (0, j))
    padded = pl.pallas_call(
        _bias_relu_block,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        grid=block_counts(x.shape, block),
        in_specs=(matrix_tile, bias_tile),
        out_specs=matrix_tile,
        interpret=mode == "interpret",
        name="fused_bias_relu",
    )(x_padded, bias_padded)
    return crop(padded, x.shape)


def _bias_relu_block(x_ref, bias_ref, out_ref) -> None:
    """One block: float32 arithmetic, one cast at the end. `maximum` keeps NaN, where a comparison would lose it."""
    total = x_ref[...].astype(jnp.float32) + bias_ref[...].astype(jnp.float32)
    out_ref[...] = jnp.maximum(total, 0.0).astype(out_ref.dtype)
