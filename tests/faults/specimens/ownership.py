"""Ownership and initialisation: blocks nobody writes, memory nobody clears, order nobody promised."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from kernel_audit.kernels.axpy_block import axpy_block, block_counts, crop, pad_to_blocks
from kernel_audit.kernels.preconditions import require_block, require_matrices


def _axpy(x_ref, y_ref):
    return 2.0 * x_ref[...].astype(jnp.float32) + y_ref[...].astype(jnp.float32)


def _launch(x, y, block, body, grid=None, **options):
    """2x + y by `body` over whole blocks; `options` are those of pallas_call."""
    require_matrices(x, y)
    require_block(block)
    tile = pl.BlockSpec(block, lambda i, j: (i, j))
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


def last_block_column_unvisited(x, y, block=(2, 4)):
    """The grid ends one block of columns early."""
    rows, columns = block_counts(x.shape, block)
    return _launch(x, y, block, axpy_block, grid=(rows, max(1, columns - 1)))


def last_program_does_not_write(x, y, block=(2, 4)):
    """Every block is visited, and the last program of each row of blocks leaves its own unwritten."""
    _, columns = block_counts(x.shape, block)

    def body(x_ref, y_ref, out_ref):
        @pl.when((pl.program_id(1) < columns - 1) | (columns == 1))
        def _():
            axpy_block(x_ref, y_ref, out_ref)

    return _launch(x, y, block, body)


def last_column_of_block_not_written(x, y, block=(2, 4)):
    """The store covers all but the last column of a block."""

    def body(x_ref, y_ref, out_ref):
        out_ref[:, : block[1] - 1] = _axpy(x_ref, y_ref)[:, : block[1] - 1].astype(out_ref.dtype)

    return _launch(x, y, block, body)


def result_accumulated_without_start(x, y, block=(2, 4)):
    """Adds to a result that nothing has cleared: right wherever memory happens to be zero."""

    def body(x_ref, y_ref, out_ref):
        out_ref[...] += _axpy(x_ref, y_ref).astype(out_ref.dtype)

    return _launch(x, y, block, body)


def scratch_accumulated_without_start(x, y, block=(2, 4)):
    """Adds to scratch memory that nothing has cleared."""

    def body(x_ref, y_ref, out_ref, total_ref):
        total_ref[...] += _axpy(x_ref, y_ref)
        out_ref[...] = total_ref[...].astype(out_ref.dtype)

    return _launch(x, y, block, body, scratch_shapes=[pltpu.VMEM(block, jnp.float32)])


def scratch_cleared_once(x, y, block=(2, 4)):
    """Scratch is cleared by the first program only, so every later block adds all earlier ones."""

    def body(x_ref, y_ref, out_ref, total_ref):
        @pl.when((pl.program_id(0) == 0) & (pl.program_id(1) == 0))
        def _():
            total_ref[...] = jnp.zeros_like(total_ref)

        total_ref[...] += _axpy(x_ref, y_ref)
        out_ref[...] = total_ref[...].astype(out_ref.dtype)

    return _launch(x, y, block, body, scratch_shapes=[pltpu.VMEM(block, jnp.float32)])


def factor_set_by_the_first_of_parallel_programs(x, y, block=(2, 4)):
    """The first program stores the factor for all others, on axes that promise no order."""

    def body(x_ref, y_ref, out_ref, factor_ref):
        @pl.when((pl.program_id(0) == 0) & (pl.program_id(1) == 0))
        def _():
            factor_ref[...] = jnp.full_like(factor_ref, 2.0)

        total = factor_ref[...] * x_ref[...].astype(jnp.float32) + y_ref[...].astype(jnp.float32)
        out_ref[...] = total.astype(out_ref.dtype)

    return _launch(
        x,
        y,
        block,
        body,
        scratch_shapes=[pltpu.VMEM(block, jnp.float32)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel")),
    )


def result_revisited_in_a_second_pass(x, y, block=(2, 4)):
    """The outer axis is the pass: 2x in the first, + y in the second, when the block has long left."""
    require_matrices(x, y)
    require_block(block)

    def body(x_ref, y_ref, out_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            out_ref[...] = (2.0 * x_ref[...].astype(jnp.float32)).astype(out_ref.dtype)

        @pl.when(pl.program_id(0) == 1)
        def _():
            total = out_ref[...].astype(jnp.float32) + y_ref[...].astype(jnp.float32)
            out_ref[...] = total.astype(out_ref.dtype)

    tile = pl.BlockSpec(block, lambda k, i, j: (i, j))
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    padded = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        grid=(2, *block_counts(x.shape, block)),
        in_specs=(tile, tile),
        out_specs=tile,
    )(x_padded, y_padded)
    return crop(padded, x.shape)


def block_read_at_its_place_in_the_matrix(x, y, block=(2, 4)):
    """Reads a block, which starts at row 0, at the row it has in the matrix: clamping repairs it."""

    def body(x_ref, y_ref, out_ref):
        rows = pl.ds(pl.program_id(0) * block[0], block[0])
        total = 2.0 * x_ref[rows, :].astype(jnp.float32) + y_ref[...].astype(jnp.float32)
        out_ref[...] = total.astype(out_ref.dtype)

    return _launch(x, y, block, body)


def block_written_at_its_place_in_the_matrix(x, y, block=(2, 4)):
    """Writes a block, which starts at row 0, at the row it has in the matrix: clamping repairs it."""

    def body(x_ref, y_ref, out_ref):
        rows = pl.ds(pl.program_id(0) * block[0], block[0])
        out_ref[rows, :] = _axpy(x_ref, y_ref).astype(out_ref.dtype)

    return _launch(x, y, block, body)


def aliased_result_read_before_written(x, y, block=(2, 4)):
    """y is aliased to the result, and the result is read as if it held y: nothing copies the block in."""

    def body(x_ref, _, out_ref):
        total = 2.0 * x_ref[...].astype(jnp.float32) + out_ref[...].astype(jnp.float32)
        out_ref[...] = total.astype(out_ref.dtype)

    return _launch(x, y, block, body, input_output_aliases={1: 0})


def operand_overwritten(x, y, block=(2, 4)):
    """Uses the memory of x as scratch; the result is right and x is not what it was."""

    def body(x_ref, y_ref, out_ref):
        x_ref[...] = _axpy(x_ref, y_ref).astype(x_ref.dtype)
        out_ref[...] = x_ref[...]

    return _launch(x, y, block, body)


def _donating(x, y, block):
    return _launch(x, y, block, axpy_block)


_donating_jit = jax.jit(_donating, static_argnums=2, donate_argnums=0)


def operand_donated(x, y, block=(2, 4)):
    """Gives the memory of x away: the caller's array is deleted by the call."""
    return _donating_jit(x, y, tuple(block))
