"""Honest kernels of the pipelined contract: other ways to move the blocks, and right."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from kernel_audit.kernels.axpy_block import axpy_block, block_counts, crop, pad_to_blocks
from kernel_audit.kernels.pipelined_axpy import pipelined_axpy
from kernel_audit.kernels.preconditions import (
    require_block,
    require_buffers,
    require_flag,
    require_matrices,
    require_mode,
    require_tpu,
)


def _check(x, y, block, buffers, no_pipelining, mode):
    require_matrices(x, y)
    require_block(block, multiple_of=(8, 128))
    require_buffers(buffers)
    require_flag("no_pipelining", no_pipelining)
    require_mode(mode)
    if mode == "tpu":
        require_tpu(x, y)


def _interpretation(mode):
    return False if mode == "tpu" else pltpu.InterpretParams(detect_races=True)


def _copied(x, y, block, mode, body, semaphores, slots=1):
    """2x + y by `body`, which moves its own blocks through `slots` buffers of each operand."""
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    whole = pl.BlockSpec(memory_space=pl.ANY)
    buffer = pltpu.VMEM((slots, *block), x.dtype)
    padded = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        in_specs=(whole, whole),
        out_specs=whole,
        scratch_shapes=[buffer, buffer, pltpu.VMEM(block, x.dtype), pltpu.SemaphoreType.DMA((semaphores,))],
        interpret=_interpretation(mode),
    )(x_padded, y_padded)
    return crop(padded, x.shape)


def _axpy(x_block, y_block):
    return (2.0 * x_block.astype(jnp.float32) + y_block.astype(jnp.float32)).astype(x_block.dtype)


def _part(ref, block, columns, k):
    """Block number `k`, counted along the rows, of a whole matrix."""
    i, j = k // columns, k % columns
    return ref.at[pl.ds(i * block[0], block[0]), pl.ds(j * block[1], block[1])]


def plain_blocks(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """An ordinary grid: the copies are left to the compiler."""
    _check(x, y, block, buffers, no_pipelining, mode)
    tile = pl.BlockSpec(block, lambda i, j: (i, j))
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    padded = pl.pallas_call(
        axpy_block,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        grid=block_counts(x.shape, block),
        in_specs=(tile, tile),
        out_specs=tile,
        interpret=_interpretation(mode),
    )(x_padded, y_padded)
    return crop(padded, x.shape)


def pipeline_columns_first(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """The pipeline walks the columns on its outer axis."""
    _check(x, y, block, buffers, no_pipelining, mode)
    return _emitted(x, y, block, buffers, no_pipelining, mode, columns_first=True)


def pipeline_with_nan_padding(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Pads with NaN, which the crop removes."""
    _check(x, y, block, buffers, no_pipelining, mode)
    rows, columns = block_counts(x.shape, block)
    padding = ((0, rows * block[0] - x.shape[0]), (0, columns * block[1] - x.shape[1]))
    x_padded, y_padded = (jnp.pad(a, padding, constant_values=np.nan) for a in (x, y))
    return crop(_emitted(x_padded, y_padded, block, buffers, no_pipelining, mode), x.shape)


def _emitted(x, y, block, buffers, no_pipelining, mode, columns_first=False):
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    rows, columns = block_counts(x.shape, block)
    grid = (columns, rows) if columns_first else (rows, columns)

    def index_map(outer, inner):
        return (inner, outer) if columns_first else (outer, inner)

    def tile(slots):
        return pl.BlockSpec(block, index_map, pipeline_mode=pl.Buffered(buffer_count=slots))

    def outer(x_ref, y_ref, out_ref):
        pltpu.emit_pipeline(
            axpy_block,
            grid=grid,
            in_specs=(tile(buffers), tile(buffers)),
            out_specs=tile(2),
            no_pipelining=no_pipelining,
        )(x_ref, y_ref, out_ref)

    whole = pl.BlockSpec(memory_space=pl.ANY)
    padded = pl.pallas_call(
        outer,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        in_specs=(whole, whole),
        out_specs=whole,
        interpret=_interpretation(mode),
    )(x_padded, y_padded)
    return crop(padded, x.shape)


def copies_one_after_another(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Each copy by hand, each awaited at once."""
    _check(x, y, block, buffers, no_pipelining, mode)
    rows, columns = block_counts(x.shape, block)

    def body(x_ref, y_ref, out_ref, x_slots, y_slots, out_buffer, semaphores):
        def step(k, carry):
            pltpu.sync_copy(_part(x_ref, block, columns, k), x_slots.at[0])
            pltpu.sync_copy(_part(y_ref, block, columns, k), y_slots.at[0])
            out_buffer[...] = _axpy(x_slots[0], y_slots[0])
            pltpu.sync_copy(out_buffer, _part(out_ref, block, columns, k))
            return carry

        jax.lax.fori_loop(0, rows * columns, step, 0)

    return _copied(x, y, block, mode, body, semaphores=1)


def copies_side_by_side(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Both operands are fetched at the same time and both awaited before use."""
    _check(x, y, block, buffers, no_pipelining, mode)
    rows, columns = block_counts(x.shape, block)

    def body(x_ref, y_ref, out_ref, x_slots, y_slots, out_buffer, semaphores):
        def step(k, carry):
            x_in = pltpu.make_async_copy(_part(x_ref, block, columns, k), x_slots.at[0], semaphores.at[0])
            y_in = pltpu.make_async_copy(_part(y_ref, block, columns, k), y_slots.at[0], semaphores.at[1])
            x_in.start()
            y_in.start()
            x_in.wait()
            y_in.wait()
            out_buffer[...] = _axpy(x_slots[0], y_slots[0])
            out = pltpu.make_async_copy(out_buffer, _part(out_ref, block, columns, k), semaphores.at[2])
            out.start()
            out.wait()
            return carry

        jax.lax.fori_loop(0, rows * columns, step, 0)

    return _copied(x, y, block, mode, body, semaphores=3)


def two_slots_by_hand(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """The next block is fetched into the other slot while this one is computed."""
    _check(x, y, block, buffers, no_pipelining, mode)
    rows, columns = block_counts(x.shape, block)
    steps = rows * columns

    def body(x_ref, y_ref, out_ref, x_slots, y_slots, out_buffer, semaphores):
        def fetch(k):
            slot = k % 2
            x_in = pltpu.make_async_copy(_part(x_ref, block, columns, k), x_slots.at[slot], semaphores.at[slot])
            y_in = pltpu.make_async_copy(_part(y_ref, block, columns, k), y_slots.at[slot], semaphores.at[2 + slot])
            return x_in, y_in

        def step(k, carry):
            @pl.when(k + 1 < steps)
            def _():
                for copy in fetch(k + 1):
                    copy.start()

            for copy in fetch(k):
                copy.wait()
            out_buffer[...] = _axpy(x_slots[k % 2], y_slots[k % 2])
            pltpu.sync_copy(out_buffer, _part(out_ref, block, columns, k))
            return carry

        for copy in fetch(0):
            copy.start()
        jax.lax.fori_loop(0, steps, step, 0)

    return _copied(x, y, block, mode, body, semaphores=4, slots=2)


def pipeline_jitted_inside(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """The checked kernel under a jit of its own."""
    _check(x, y, block, buffers, no_pipelining, mode)
    return jax.jit(lambda x, y: pipelined_axpy(x, y, block, buffers, no_pipelining, mode))(x, y)


def refuses_in_other_words(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """The same refusals, worded by someone else; each still names the value."""
    try:
        return pipelined_axpy(x, y, block, buffers, no_pipelining, mode)
    except ValueError as refusal:
        raise ValueError(f"axpy cannot take this call. {refusal}") from refusal
    except RuntimeError as refusal:
        raise RuntimeError(f"axpy cannot run here. {refusal}") from refusal
