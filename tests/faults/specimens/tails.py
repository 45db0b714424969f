"""Tails: the last partial block is dropped, cut short, read from elsewhere or handed back uncropped."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from kernel_audit.kernels.axpy_block import axpy_block, block_counts, crop, pad_to_blocks
from kernel_audit.kernels.preconditions import require_block, require_matrices


def _padded_axpy(x, y, block, body=axpy_block, grid=None, operand_map=lambda i, j: (i, j)):
    """2x + y on whole blocks, not cropped; `grid` and `operand_map` stand for what goes wrong."""
    require_matrices(x, y)
    require_block(block)
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    operand = pl.BlockSpec(block, operand_map)
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        grid=grid or block_counts(x.shape, block),
        in_specs=(operand, operand),
        out_specs=pl.BlockSpec(block, lambda i, j: (i, j)),
    )(x_padded, y_padded)


def _whole_blocks(shape, block):
    """Blocks that lie wholly inside, at least one along each axis."""
    return max(1, shape[0] // block[0]), max(1, shape[1] // block[1])


def floor_grid(x, y, block=(2, 4)):
    """The grid is the floor of shape over block: the last partial blocks are never visited."""
    return crop(_padded_axpy(x, y, block, grid=_whole_blocks(x.shape, block)), x.shape)


def tail_from_last_whole_block(x, y, block=(2, 4)):
    """The partial block along rows reads the last whole one instead of its own operands."""
    last = _whole_blocks(x.shape, block)[0] - 1
    padded = _padded_axpy(x, y, block, operand_map=lambda i, j: (jnp.minimum(i, last), j))
    return crop(padded, x.shape)


def _masked_body(limit_of_columns, block):
    def body(x_ref, y_ref, out_ref):
        axpy_block(x_ref, y_ref, out_ref)
        column = pl.program_id(1) * block[1] + jax.lax.broadcasted_iota(jnp.int32, block, 1)
        out_ref[...] = jnp.where(column < limit_of_columns, out_ref[...], 0)

    return body


def tail_one_short(x, y, block=(2, 4)):
    """Where a column tail exists it is masked one element too early."""
    columns = x.shape[1]
    limit = columns - 1 if columns % block[1] else columns
    return crop(_padded_axpy(x, y, block, body=_masked_body(limit, block)), x.shape)


def tail_masked_by_rows(x, y, block=(2, 4)):
    """Columns are masked with the number of rows."""
    return crop(_padded_axpy(x, y, block, body=_masked_body(x.shape[0], block)), x.shape)


def tail_left_zero(x, y, block=(2, 4)):
    """Rows after the last whole block are filled with zeros instead of being computed."""
    rows = x.shape[0] // block[0] * block[0]
    if rows in (0, x.shape[0]):
        return crop(_padded_axpy(x, y, block), x.shape)
    whole = _padded_axpy(x[:rows], y[:rows], block)[:rows, : x.shape[1]]
    return jnp.pad(whole, ((0, x.shape[0] - rows), (0, 0)))


def divisible_only(x, y, block=(2, 4)):
    """Right on whole blocks, and refuses every shape that has a tail."""
    if x.shape[0] % block[0] or x.shape[1] % block[1]:
        raise ValueError(f"shape {x.shape} is no multiple of block {block}")
    return _padded_axpy(x, y, block)


def uncropped(x, y, block=(2, 4)):
    """Hands back the padded result."""
    return _padded_axpy(x, y, block)


def singleton_axes_squeezed(x, y, block=(2, 4)):
    """A single row or column comes back with one axis less."""
    return jnp.squeeze(crop(_padded_axpy(x, y, block), x.shape))


def cropped_from_the_far_end(x, y, block=(2, 4)):
    """The padding lies below and right, and is cropped above and left."""
    padded = _padded_axpy(x, y, block)
    return padded[padded.shape[0] - x.shape[0] :, padded.shape[1] - x.shape[1] :]


def window_slides_back(x, y, block=(2, 4)):
    """A row window past the end: where reads are clamped, it slides back over rows already done."""
    require_matrices(x, y)
    require_block(block)
    rows, columns = x.shape
    if rows < block[0]:
        return crop(_padded_axpy(x, y, block), x.shape)

    def body(x_ref, y_ref, out_ref):
        window = pl.ds(pl.program_id(0) * block[0], block[0])
        out_ref[...] = (2.0 * x_ref[window, :].astype(jnp.float32) + y_ref[window, :].astype(jnp.float32)).astype(
            out_ref.dtype
        )

    whole = pl.BlockSpec((rows, columns), lambda i: (0, 0))
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(pl.cdiv(rows, block[0]),),
        in_specs=(whole, whole),
        out_specs=pl.BlockSpec((block[0], columns), lambda i: (i, 0)),
    )(x, y)
