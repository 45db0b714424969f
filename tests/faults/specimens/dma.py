"""Copies written by hand: started and not awaited, into memory still in use, or two into one buffer."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from kernel_audit.kernels.axpy_block import block_counts, crop, pad_to_blocks
from kernel_audit.kernels.preconditions import (
    require_block,
    require_buffers,
    require_flag,
    require_matrices,
    require_mode,
    require_tpu,
)


def _copied(x, y, block, buffers, no_pipelining, mode, body):
    """2x + y by `body`, which moves its own blocks: whole matrices outside, one buffer each inside."""
    require_matrices(x, y)
    require_block(block, multiple_of=(8, 128))
    require_buffers(buffers)
    require_flag("no_pipelining", no_pipelining)
    require_mode(mode)
    if mode == "tpu":
        require_tpu(x, y)
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    whole = pl.BlockSpec(memory_space=pl.ANY)
    buffer = pltpu.VMEM(block, x.dtype)
    padded = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        grid=block_counts(x.shape, block),
        in_specs=(whole, whole),
        out_specs=whole,
        scratch_shapes=[buffer, buffer, buffer, pltpu.SemaphoreType.DMA((4,))],
        interpret=False if mode == "tpu" else pltpu.InterpretParams(detect_races=True),
    )(x_padded, y_padded)
    return crop(padded, x.shape)


def _here(ref, block):
    """The part of a whole matrix that this program owns."""
    i, j = pl.program_id(0), pl.program_id(1)
    return ref.at[pl.ds(i * block[0], block[0]), pl.ds(j * block[1], block[1])]


def _axpy(x_buffer, y_buffer):
    total = 2.0 * x_buffer[...].astype(jnp.float32) + y_buffer[...].astype(jnp.float32)
    return total.astype(x_buffer.dtype)


def operand_read_before_it_arrived(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """x is waited for after it has been used."""

    def body(x_ref, y_ref, out_ref, x_buffer, y_buffer, out_buffer, semaphores):
        x_in = pltpu.make_async_copy(_here(x_ref, block), x_buffer, semaphores.at[0])
        y_in = pltpu.make_async_copy(_here(y_ref, block), y_buffer, semaphores.at[1])
        x_in.start()
        y_in.start()
        y_in.wait()
        out_buffer[...] = _axpy(x_buffer, y_buffer)
        x_in.wait()
        pltpu.sync_copy(out_buffer, _here(out_ref, block))

    return _copied(x, y, block, buffers, no_pipelining, mode, body)


def operand_never_awaited(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """The copy of x is started and never waited for."""

    def body(x_ref, y_ref, out_ref, x_buffer, y_buffer, out_buffer, semaphores):
        pltpu.make_async_copy(_here(x_ref, block), x_buffer, semaphores.at[0]).start()
        pltpu.sync_copy(_here(y_ref, block), y_buffer)
        out_buffer[...] = _axpy(x_buffer, y_buffer)
        pltpu.sync_copy(out_buffer, _here(out_ref, block))

    return _copied(x, y, block, buffers, no_pipelining, mode, body)


def result_never_awaited(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """The copy of the result is started and never waited for."""

    def body(x_ref, y_ref, out_ref, x_buffer, y_buffer, out_buffer, semaphores):
        pltpu.sync_copy(_here(x_ref, block), x_buffer)
        pltpu.sync_copy(_here(y_ref, block), y_buffer)
        out_buffer[...] = _axpy(x_buffer, y_buffer)
        pltpu.make_async_copy(out_buffer, _here(out_ref, block), semaphores.at[2]).start()

    return _copied(x, y, block, buffers, no_pipelining, mode, body)


def result_overwritten_while_it_leaves(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """The result's buffer is cleared for the next program before the copy out has ended."""

    def body(x_ref, y_ref, out_ref, x_buffer, y_buffer, out_buffer, semaphores):
        pltpu.sync_copy(_here(x_ref, block), x_buffer)
        pltpu.sync_copy(_here(y_ref, block), y_buffer)
        out_buffer[...] = _axpy(x_buffer, y_buffer)
        out = pltpu.make_async_copy(out_buffer, _here(out_ref, block), semaphores.at[2])
        out.start()
        out_buffer[...] = jnp.zeros_like(out_buffer)
        out.wait()

    return _copied(x, y, block, buffers, no_pipelining, mode, body)


def two_copies_into_one_buffer(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """y and then x are both on their way into one buffer; waiting for both in order hides the race.

    The values come out right wherever the copies happen to end in order, and a small vector clock gives
    both copies one slot, so that it reports nothing.
    """

    def body(x_ref, y_ref, out_ref, x_buffer, y_buffer, out_buffer, semaphores):
        pltpu.sync_copy(_here(y_ref, block), y_buffer)
        early = pltpu.make_async_copy(_here(y_ref, block), x_buffer, semaphores.at[0])
        late = pltpu.make_async_copy(_here(x_ref, block), x_buffer, semaphores.at[1])
        early.start()
        late.start()
        early.wait()
        late.wait()
        out_buffer[...] = _axpy(x_buffer, y_buffer)
        pltpu.sync_copy(out_buffer, _here(out_ref, block))

    return _copied(x, y, block, buffers, no_pipelining, mode, body)


def two_copies_out_to_one_place(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """A first estimate and the result leave for the same block of the output at the same time."""

    def body(x_ref, y_ref, out_ref, x_buffer, y_buffer, out_buffer, semaphores):
        pltpu.sync_copy(_here(x_ref, block), x_buffer)
        pltpu.sync_copy(_here(y_ref, block), y_buffer)
        out_buffer[...] = _axpy(x_buffer, y_buffer)
        estimate = pltpu.make_async_copy(y_buffer, _here(out_ref, block), semaphores.at[2])
        result = pltpu.make_async_copy(out_buffer, _here(out_ref, block), semaphores.at[3])
        estimate.start()
        result.start()
        estimate.wait()
        result.wait()

    return _copied(x, y, block, buffers, no_pipelining, mode, body)


def prefetch_into_the_buffer_in_use(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """The next block of x is fetched into the only buffer while this block is still being read."""

    def body(x_ref, y_ref, out_ref, x_buffer, y_buffer, out_buffer, semaphores):
        pltpu.sync_copy(_here(x_ref, block), x_buffer)
        pltpu.sync_copy(_here(y_ref, block), y_buffer)
        ahead = pltpu.make_async_copy(_here(x_ref, block), x_buffer, semaphores.at[0])
        ahead.start()
        out_buffer[...] = _axpy(x_buffer, y_buffer)
        ahead.wait()
        pltpu.sync_copy(out_buffer, _here(out_ref, block))

    return _copied(x, y, block, buffers, no_pipelining, mode, body)


def wrong_block_copied_in(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """y's copy takes the row of the block from the column index."""

    def body(x_ref, y_ref, out_ref, x_buffer, y_buffer, out_buffer, semaphores):
        rows = pl.num_programs(0)
        other = y_ref.at[
            pl.ds((pl.program_id(1) % rows) * block[0], block[0]),
            pl.ds(pl.program_id(1) * block[1], block[1]),
        ]
        pltpu.sync_copy(_here(x_ref, block), x_buffer)
        pltpu.sync_copy(other, y_buffer)
        out_buffer[...] = _axpy(x_buffer, y_buffer)
        pltpu.sync_copy(out_buffer, _here(out_ref, block))

    return _copied(x, y, block, buffers, no_pipelining, mode, body)
