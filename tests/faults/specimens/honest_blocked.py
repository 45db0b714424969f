"""Honest kernels of the blocked contract: written differently, and right."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from kernel_audit.kernels.axpy_block import axpy_block, block_counts, crop, pad_to_blocks
from kernel_audit.kernels.blocked_axpy import blocked_axpy
from kernel_audit.kernels.preconditions import require_block, require_matrices


def _check(x, y, block):
    require_matrices(x, y)
    require_block(block)


def _launch(x, y, block, body=axpy_block, grid=None, index_map=lambda i, j: (i, j), **options):
    """2x + y by `body` over whole blocks; `options` are those of pallas_call."""
    tile = pl.BlockSpec(block, index_map)
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    padded = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        grid=grid or block_counts(x.shape, block),
        in_specs=(tile, tile),
        out_specs=tile,
        **options,
    )(x_padded, y_padded)
    return crop(padded, x.shape)


def columns_first(x, y, block=(2, 4)):
    """Columns are the outer axis of the grid."""
    _check(x, y, block)
    rows, columns = block_counts(x.shape, block)
    return _launch(x, y, block, grid=(columns, rows), index_map=lambda j, i: (i, j))


def backwards(x, y, block=(2, 4)):
    """From the last block to the first."""
    _check(x, y, block)
    rows, columns = block_counts(x.shape, block)
    return _launch(x, y, block, index_map=lambda i, j: (rows - 1 - i, columns - 1 - j))


def one_axis(x, y, block=(2, 4)):
    """A grid of one axis, divided into rows and columns by the index map."""
    _check(x, y, block)
    rows, columns = block_counts(x.shape, block)
    return _launch(x, y, block, grid=(rows * columns,), index_map=lambda k: (k // columns, k % columns))


def larger_blocks(x, y, block=(2, 4)):
    """Twice the block along each axis."""
    _check(x, y, block)
    return blocked_axpy(x, y, block=(2 * block[0], 2 * block[1]))


def whole_rows(x, y, block=(2, 4)):
    """One program for each block of whole rows."""
    _check(x, y, block)
    return _launch(x, y, (block[0], x.shape[1]))


def one_program(x, y, block=(2, 4)):
    """No grid: the whole matrix is one block."""
    _check(x, y, block)
    return pl.pallas_call(axpy_block, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x, y)


def unpadded_tail(x, y, block=(2, 4)):
    """Partial blocks are left to Pallas: what lies outside the matrix is neither read nor kept."""
    _check(x, y, block)
    tile = pl.BlockSpec(block, lambda i, j: (i, j))
    return pl.pallas_call(
        axpy_block,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=block_counts(x.shape, block),
        in_specs=(tile, tile),
        out_specs=tile,
    )(x, y)


def masked_tail(x, y, block=(2, 4)):
    """Partial blocks are masked inside the kernel, and nothing is padded."""
    _check(x, y, block)
    rows, columns = x.shape

    def body(x_ref, y_ref, out_ref):
        row = pl.program_id(0) * block[0] + jax.lax.broadcasted_iota(jnp.int32, block, 0)
        column = pl.program_id(1) * block[1] + jax.lax.broadcasted_iota(jnp.int32, block, 1)
        inside = (row < rows) & (column < columns)
        total = 2.0 * x_ref[...].astype(jnp.float32) + y_ref[...].astype(jnp.float32)
        out_ref[...] = jnp.where(inside, total, 0.0).astype(out_ref.dtype)

    tile = pl.BlockSpec(block, lambda i, j: (i, j))
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=block_counts(x.shape, block),
        in_specs=(tile, tile),
        out_specs=tile,
    )(x, y)


def nan_in_padding(x, y, block=(2, 4)):
    """Pads with NaN, which the crop removes."""
    _check(x, y, block)
    below, right = (
        count * size - extent for count, size, extent in zip(block_counts(x.shape, block), block, x.shape, strict=True)
    )
    padding = ((0, below), (0, right))
    x_padded, y_padded = (jnp.pad(a, padding, constant_values=np.nan) for a in (x, y))
    return crop(_launch(x_padded, y_padded, block), x.shape)


def added_twice(x, y, block=(2, 4)):
    """x + x + y."""
    _check(x, y, block)

    def body(x_ref, y_ref, out_ref):
        wide = x_ref[...].astype(jnp.float32)
        out_ref[...] = (wide + wide + y_ref[...].astype(jnp.float32)).astype(out_ref.dtype)

    return _launch(x, y, block, body)


@functools.partial(jax.jit, static_argnames="block")
def _jitted(x, y, block):
    return blocked_axpy(x, y, block=block)


def jitted_inside(x, y, block=(2, 4)):
    """The kernel lies under a jit of its own."""
    _check(x, y, block)
    return _jitted(x, y, tuple(block))


def interpreted_off_tpu(x, y, block=(2, 4)):
    """The commonest idiom: interpret wherever the backend is no TPU."""
    _check(x, y, block)
    return _launch(x, y, block, interpret=jax.default_backend() != "tpu")


def interpreted_by_the_author(x, y, block=(2, 4)):
    """The author's own settings of the TPU interpreter were left in."""
    _check(x, y, block)
    return _launch(x, y, block, interpret=pltpu.InterpretParams(uninitialized_memory="zero"))


def arithmetic_as_stored(x, y, block=(2, 4)):
    """Arithmetic in the dtype of the operands: in bfloat16 2x is exact, so one rounding is left."""
    _check(x, y, block)

    def body(x_ref, y_ref, out_ref):
        out_ref[...] = 2 * x_ref[...] + y_ref[...]

    return _launch(x, y, block, body)


FACTOR = np.full((1, 1), 2.0, np.float32)


def closure_over_a_constant(x, y, block=(2, 4)):
    """The factor is an array of the module, which becomes a constant of the program."""
    _check(x, y, block)

    def body(factor_ref, x_ref, y_ref, out_ref):
        total = factor_ref[0, 0] * x_ref[...].astype(jnp.float32) + y_ref[...].astype(jnp.float32)
        out_ref[...] = total.astype(out_ref.dtype)

    tile = pl.BlockSpec(block, lambda i, j: (i, j))
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    padded = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        grid=block_counts(x.shape, block),
        in_specs=(pl.BlockSpec((1, 1), lambda i, j: (0, 0)), tile, tile),
        out_specs=tile,
    )(jnp.asarray(FACTOR), x_padded, y_padded)
    return crop(padded, x.shape)


def closure_over_a_number(x, y, block=(2, 4)):
    """The factor is a number bound from outside the body."""
    _check(x, y, block)

    def scaled(factor, x_ref, y_ref, out_ref):
        total = factor * x_ref[...].astype(jnp.float32) + y_ref[...].astype(jnp.float32)
        out_ref[...] = total.astype(out_ref.dtype)

    return _launch(x, y, block, functools.partial(scaled, 2.0))


def through_scratch(x, y, block=(2, 4)):
    """The sum is built in scratch memory, written before it is read."""
    _check(x, y, block)

    def body(x_ref, y_ref, out_ref, total_ref):
        total_ref[...] = 2.0 * x_ref[...].astype(jnp.float32)
        total_ref[...] += y_ref[...].astype(jnp.float32)
        out_ref[...] = total_ref[...].astype(out_ref.dtype)

    return _launch(x, y, block, body, scratch_shapes=[pltpu.VMEM(block, jnp.float32)])


def accumulated_over_an_inner_axis(x, y, block=(2, 4)):
    """An inner axis of two steps revisits the block while it stays: x first, then x + y is added."""
    _check(x, y, block)

    def body(x_ref, y_ref, out_ref, total_ref):
        @pl.when(pl.program_id(2) == 0)
        def _():
            total_ref[...] = 2.0 * x_ref[...].astype(jnp.float32)

        @pl.when(pl.program_id(2) == 1)
        def _():
            total = total_ref[...] + y_ref[...].astype(jnp.float32)
            out_ref[...] = total.astype(out_ref.dtype)

    return _launch(
        x,
        y,
        block,
        body,
        grid=(*block_counts(x.shape, block), 2),
        index_map=lambda i, j, k: (i, j),
        scratch_shapes=[pltpu.VMEM(block, jnp.float32)],
    )


def parallel_axes(x, y, block=(2, 4)):
    """Both axes are declared parallel, and are."""
    _check(x, y, block)
    order = pltpu.CompilerParams(dimension_semantics=("parallel", "parallel"))
    return _launch(x, y, block, compiler_params=order)


def aliased_result(x, y, block=(2, 4)):
    """The result takes the memory of padded y, each block of which is read before it is written."""
    _check(x, y, block)
    return _launch(x, y, block, input_output_aliases={1: 0})


def two_kernels(x, y, block=(2, 4)):
    """One kernel doubles into float32, a second adds."""
    _check(x, y, block)

    def double(x_ref, doubled_ref):
        doubled_ref[...] = 2.0 * x_ref[...].astype(jnp.float32)

    def add(doubled_ref, y_ref, out_ref):
        out_ref[...] = (doubled_ref[...] + y_ref[...].astype(jnp.float32)).astype(out_ref.dtype)

    tile = pl.BlockSpec(block, lambda i, j: (i, j))
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    grid = block_counts(x.shape, block)
    wide = jax.ShapeDtypeStruct(x_padded.shape, jnp.float32)
    doubled = pl.pallas_call(double, out_shape=wide, grid=grid, in_specs=(tile,), out_specs=tile)(x_padded)
    stored = jax.ShapeDtypeStruct(x_padded.shape, x.dtype)
    padded = pl.pallas_call(add, out_shape=stored, grid=grid, in_specs=(tile, tile), out_specs=tile)(doubled, y_padded)
    return crop(padded, x.shape)


def halves_concatenated(x, y, block=(2, 4)):
    """Upper and lower rows have a kernel each."""
    _check(x, y, block)
    half = x.shape[0] // 2
    if half == 0:
        return blocked_axpy(x, y, block=block)
    upper = blocked_axpy(x[:half], y[:half], block=block)
    return jnp.concatenate([upper, blocked_axpy(x[half:], y[half:], block=block)])


def transposed_and_back(x, y, block=(2, 4)):
    """Works on the transposes."""
    _check(x, y, block)
    return blocked_axpy(x.T, y.T, block=block).T


def row_by_row_in_block(x, y, block=(2, 4)):
    """A loop over the rows of a block."""
    _check(x, y, block)

    def body(x_ref, y_ref, out_ref):
        def one_row(row, carry):
            here = (pl.ds(row, 1), slice(None))
            total = 2.0 * x_ref[here].astype(jnp.float32) + y_ref[here].astype(jnp.float32)
            out_ref[here] = total.astype(out_ref.dtype)
            return carry

        jax.lax.fori_loop(0, block[0], one_row, 0)

    return _launch(x, y, block, body)


def under_custom_vjp(x, y, block=(2, 4)):
    """The kernel has a derivative rule of its own."""
    _check(x, y, block)

    @jax.custom_vjp
    def axpy(x, y):
        return blocked_axpy(x, y, block=block)

    axpy.defvjp(lambda x, y: (axpy(x, y), None), lambda _, g: (2 * g, g))
    return axpy(x, y)


def under_cond(x, y, block=(2, 4)):
    """The kernel lies in one branch, an equal one of other blocks in the other."""
    _check(x, y, block)
    return jax.lax.cond(
        jnp.signbit(x[0, 0].astype(jnp.float32)),
        lambda x, y: blocked_axpy(x, y, block=block),
        lambda x, y: blocked_axpy(x, y, block=(block[0], 2 * block[1])),
        x,
        y,
    )


def under_vmap(x, y, block=(2, 4)):
    """A batch of one-row matrices, one kernel over all of them."""
    _check(x, y, block)
    rows = jax.vmap(lambda x, y: blocked_axpy(x, y, block=(1, block[1])))
    return rows(x[:, None, :], y[:, None, :])[:, 0, :]


def row_table_prefetched(x, y, block=(2, 4)):
    """The order of the blocks of rows comes from a table that is fetched beforehand."""
    _check(x, y, block)
    rows, columns = block_counts(x.shape, block)
    table = jnp.arange(rows, dtype=jnp.int32)[::-1]

    def body(_, x_ref, y_ref, out_ref):
        axpy_block(x_ref, y_ref, out_ref)

    tile = pl.BlockSpec(block, lambda i, j, table: (table[i], j))
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    padded = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=1, grid=(rows, columns), in_specs=(tile, tile), out_specs=tile
        ),
    )(table, x_padded, y_padded)
    return crop(padded, x.shape)


def pipeline_without_a_mode(x, y, block=(2, 4)):
    """An emitted pipeline that has no mode argument and never asks where it runs."""
    _check(x, y, block)
    tiles = -(-block[0] // 8) * 8, -(-block[1] // 128) * 128
    x_padded, y_padded = pad_to_blocks(x, tiles), pad_to_blocks(y, tiles)
    tile = pl.BlockSpec(tiles, lambda i, j: (i, j))

    def outer(x_ref, y_ref, out_ref):
        pltpu.emit_pipeline(axpy_block, grid=block_counts(x.shape, tiles), in_specs=(tile, tile), out_specs=tile)(
            x_ref, y_ref, out_ref
        )

    whole = pl.BlockSpec(memory_space=pl.ANY)
    padded = pl.pallas_call(
        outer,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        in_specs=(whole, whole),
        out_specs=whole,
    )(x_padded, y_padded)
    return crop(padded, x.shape)
