"""2x + y for a GPU: one Triton program for each block, tails by masks."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from .preconditions import require_gpu, require_matrices, require_mode, require_triton_block
from .triton_block import inside, launch

__all__ = ["triton_axpy"]


def triton_axpy(
    x: jax.Array,
    y: jax.Array,
    block: tuple[int, int] = (16, 64),
    mode: str = "interpret",
) -> jax.Array:
    """2x + y for two matrices of one shape and dtype, float32 or bfloat16; the result has both.

    Arithmetic is float32 with one cast at the end. `block` (rows, columns) are powers of two; no operand is padded. Mode
    "interpret" runs in the generic interpreter, wherever it is; mode "gpu" runs on a GPU and nowhere else.

    Raises ValueError, before launch, for operands that differ, are empty, of another rank or dtype, and for a block or mode
    that is not supported; RuntimeError in mode "gpu" without a GPU or without operands on it.
    """
    require_matrices(x, y)
    require_triton_block(block)
    require_mode(mode, off_target="interpret", target="gpu")
    if mode == "gpu":
        require_gpu(x, y)
    block = (block[0], block[1])
    tile = pl.BlockSpec(block, lambda i, j: (i, j))
    body = functools.partial(_axpy_block, x.shape, block)
    return launch(body, (x, y), (tile, tile), block, name="triton_axpy", interpret=mode == "interpret")


def _axpy_block(shape: tuple[int, int], block: tuple[int, int], x_ref, y_ref, out_ref) -> None:
    """One block: float32 arithmetic, one cast at the end; what lies outside the matrix is neither read nor written."""
    mask = inside(shape, block)
    x, y = (plgpu.load(ref, mask=mask, other=0).astype(jnp.float32) for ref in (x_ref, y_ref))
    plgpu.store(out_ref, (2.0 * x + y).astype(out_ref.dtype), mask=mask)
