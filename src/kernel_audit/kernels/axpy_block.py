"""What both axpy kernels do to one block, and how a matrix is cut into whole blocks."""

from __future__ import annotations

import jax
import jax.numpy as jnp

__all__ = ["axpy_block", "block_counts", "crop", "pad_to_blocks"]


def axpy_block(x_ref, y_ref, out_ref) -> None:
    """out = 2x + y for one block: float32 arithmetic, one cast at the end."""
    total = 2.0 * x_ref[...].astype(jnp.float32) + y_ref[...].astype(jnp.float32)
    out_ref[...] = total.astype(out_ref.dtype)


def block_counts(shape: tuple[int, int], block: tuple[int, int]) -> tuple[int, int]:
    """Blocks needed to cover `shape` along each axis, the last one perhaps partly outside."""
    return -(-shape[0] // block[0]), -(-shape[1] // block[1])


def pad_to_blocks(matrix: jax.Array, block: tuple[int, int]) -> jax.Array:
    """`matrix` with zeros below and to the right, up to whole blocks.

    Zeros are harmless where no element of a result depends on another, as in 2x + y; the padding is cropped again.
    """
    counts = block_counts(matrix.shape, block)
    below, right = (count * size - extent for count, size, extent in zip(counts, block, matrix.shape, strict=True))
    return jnp.pad(matrix, ((0, below), (0, right)))


def crop(padded: jax.Array, shape: tuple[int, int]) -> jax.Array:
    """The logical part of a padded result."""
    return padded[: shape[0], : shape[1]]
