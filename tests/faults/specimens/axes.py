"""Axes and index maps: the right arithmetic on the wrong elements."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from kernel_audit.kernels.axpy_block import axpy_block, block_counts, crop, pad_to_blocks
from kernel_audit.kernels.preconditions import require_block, require_matrices


def _same(i, j):
    return i, j


def _mapped_axpy(x, y, block, grid=None, x_map=_same, y_map=_same, out_map=_same, body=axpy_block):
    """2x + y with an index map for each operand and for the result."""
    require_matrices(x, y)
    require_block(block)
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    padded = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        grid=grid or block_counts(x.shape, block),
        in_specs=(pl.BlockSpec(block, x_map), pl.BlockSpec(block, y_map)),
        out_specs=pl.BlockSpec(block, out_map),
    )(x_padded, y_padded)
    return crop(padded, x.shape)


def grid_axes_swapped(x, y, block=(2, 4)):
    """The grid has the block counts in the wrong order: every square grid is right, no rectangle is."""
    rows, columns = block_counts(x.shape, block)
    return _mapped_axpy(x, y, block, grid=(columns, rows))


def square_grid_transposed(x, y, block=(2, 4)):
    """Square grids are walked by columns, and the result's map was forgotten: no rectangle shows it."""
    rows, columns = block_counts(x.shape, block)
    if rows != columns:
        return _mapped_axpy(x, y, block)
    return _mapped_axpy(x, y, block, x_map=lambda i, j: (j, i), y_map=lambda i, j: (j, i))


def result_map_transposed(x, y, block=(2, 4)):
    """The result's block index has its axes exchanged."""
    return _mapped_axpy(x, y, block, out_map=lambda i, j: (j, i))


def operands_exchanged(x, y, block=(2, 4)):
    """x + 2y."""
    return _mapped_axpy(y, x, block)


def second_operand_stays_at_first_block(x, y, block=(2, 4)):
    """Every program reads the first block of y."""
    return _mapped_axpy(x, y, block, y_map=lambda i, j: (0, 0))


def second_operand_ignores_columns(x, y, block=(2, 4)):
    """The column of the block of y is always the first."""
    return _mapped_axpy(x, y, block, y_map=lambda i, j: (i, 0))


def maps_in_elements(x, y, block=(2, 4)):
    """All index maps give element offsets where block numbers are meant; clamping hides it for two blocks."""

    def offsets(i, j):
        return i * block[0], j * block[1]

    return _mapped_axpy(x, y, block, x_map=offsets, y_map=offsets, out_map=offsets)


def first_operand_map_in_elements(x, y, block=(2, 4)):
    """Only the map of x gives element offsets."""
    return _mapped_axpy(x, y, block, x_map=lambda i, j: (i * block[0], j))


def first_operand_one_block_late(x, y, block=(2, 4)):
    """x is read one block further down."""
    return _mapped_axpy(x, y, block, x_map=lambda i, j: (i + 1, j))


def result_rotated_by_one_block(x, y, block=(2, 4)):
    """Each block of rows is written where the next belongs, the last one to the top."""
    rows, _ = block_counts(x.shape, block)
    return _mapped_axpy(x, y, block, out_map=lambda i, j: ((i + 1) % rows, j))


def rows_reversed_in_block(x, y, block=(2, 4)):
    """The rows of each block come out upside down."""

    def body(x_ref, y_ref, out_ref):
        for row in range(block[0]):
            total = 2.0 * x_ref[row, :].astype(jnp.float32) + y_ref[row, :].astype(jnp.float32)
            out_ref[block[0] - 1 - row, :] = total.astype(out_ref.dtype)

    return _mapped_axpy(x, y, block, body=body)


def columns_shifted_by_one(x, y, block=(2, 4)):
    """y is shifted by one column before the launch; constant rows would not show it."""
    return _mapped_axpy(x, jnp.roll(y, 1, axis=1), block)


def second_operand_in_wrong_order(x, y, block=(2, 4)):
    """y is taken in column order, as a buffer of the other layout would be."""
    return _mapped_axpy(x, y.T.reshape(y.shape), block)


def first_row_for_all(x, y, block=(2, 4)):
    """y is treated as a bias: its first row serves all rows."""
    require_matrices(x, y)
    return _mapped_axpy(x, jnp.broadcast_to(y[:1], y.shape), block)


def blocks_counted_along_one_axis(x, y, block=(2, 4)):
    """Both extents of the grid are counted along the rows."""
    rows, _ = block_counts(x.shape, block)
    return _mapped_axpy(x, y, block, grid=(rows, rows))
