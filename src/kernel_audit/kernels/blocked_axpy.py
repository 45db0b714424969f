"""2x + y, one program for each block of a two-dimensional grid.

The small blocks that it allows show indexing and tails at a glance; they are declared for no target, whose
tiles are larger.
"""

from __future__ import annotations

import jax
from jax.experimental import pallas as pl

from .axpy_block import axpy_block, block_counts, crop, pad_to_blocks
from .preconditions import require_block, require_matrices

__all__ = ["blocked_axpy"]


def blocked_axpy(x: jax.Array, y: jax.Array, block: tuple[int, int] = (2, 4)) -> jax.Array:
    """2x + y for two matrices of one shape and dtype, float32 or bfloat16; the result has both.

    Arithmetic is float32 with one cast at the end. The grid is the ceiling of shape over `block` (rows,
    columns); operands are padded to whole blocks and the result is cropped. On a CPU the kernel is
    interpreted.

    Raises ValueError, before launch, for operands that differ, are empty, of another rank or dtype, and for
    a block that is not two positive whole numbers.
    """
    require_matrices(x, y)
    require_block(block)
    tile = pl.BlockSpec(tuple(block), lambda i, j: (i, j))
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    padded = pl.pallas_call(
        axpy_block,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        grid=block_counts(x.shape, block),
        in_specs=(tile, tile),
        out_specs=tile,
        interpret=jax.default_backend() == "cpu",
    )(x_padded, y_padded)
    return crop(padded, x.shape)
