"""Emitted pipelines that move the wrong blocks, or are right in one configuration only."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from kernel_audit.kernels.axpy_block import axpy_block, block_counts, crop, pad_to_blocks
from kernel_audit.kernels.preconditions import (
    require_block,
    require_buffers,
    require_flag,
    require_matrices,
    require_mode,
    require_tpu,
)


def _same(i, j):
    return i, j


def _pipelined(x, y, block, buffers, no_pipelining, mode, *, body=axpy_block, grid=None, x_map=_same, out_map=_same):
    """The clean kernel; `body`, `grid` and the maps stand for what goes wrong."""
    require_matrices(x, y)
    require_block(block, multiple_of=(8, 128))
    require_buffers(buffers)
    require_flag("no_pipelining", no_pipelining)
    require_mode(mode)
    if mode == "tpu":
        require_tpu(x, y)
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)

    def tile(index_map, slots):
        return pl.BlockSpec(block, index_map, pipeline_mode=pl.Buffered(buffer_count=slots))

    def outer(x_ref, y_ref, out_ref):
        pltpu.emit_pipeline(
            body,
            grid=grid or block_counts(x.shape, block),
            in_specs=(tile(x_map, buffers), tile(_same, buffers)),
            out_specs=tile(out_map, 2),
            no_pipelining=no_pipelining,
        )(x_ref, y_ref, out_ref)

    whole = pl.BlockSpec(memory_space=pl.ANY)
    padded = pl.pallas_call(
        outer,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        in_specs=(whole, whole),
        out_specs=whole,
        interpret=False if mode == "tpu" else pltpu.InterpretParams(detect_races=True),
    )(x_padded, y_padded)
    return crop(padded, x.shape)


def pipeline_result_stays_at_first_tile(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Every result tile goes to the first place: only the last one survives."""
    return _pipelined(x, y, block, buffers, no_pipelining, mode, out_map=lambda i, j: (0, 0))


def pipeline_result_transposed(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """The result's map has its axes exchanged."""
    return _pipelined(x, y, block, buffers, no_pipelining, mode, out_map=lambda i, j: (j, i))


def pipeline_grid_is_floor(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """The grid is the floor of shape over block; a matrix smaller than a block has none at all."""
    grid = x.shape[0] // block[0], x.shape[1] // block[1]
    return _pipelined(x, y, block, buffers, no_pipelining, mode, grid=grid)


def pipeline_map_in_elements(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """The map of x gives element offsets where block numbers are meant."""

    def offsets(i, j):
        return i * block[0], j * block[1]

    return _pipelined(x, y, block, buffers, no_pipelining, mode, x_map=offsets)


def pipeline_operands_exchanged(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """x + 2y."""
    return _pipelined(y, x, block, buffers, no_pipelining, mode)


def pipeline_accumulates_without_start(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Adds to a result slot that nothing has cleared."""

    def body(x_ref, y_ref, out_ref):
        total = 2.0 * x_ref[...].astype(jnp.float32) + y_ref[...].astype(jnp.float32)
        out_ref[...] += total.astype(out_ref.dtype)

    return _pipelined(x, y, block, buffers, no_pipelining, mode, body=body)


def pipeline_rounds_before_the_addition(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """2x goes through bfloat16 before the addition."""

    def body(x_ref, y_ref, out_ref):
        doubled = (2.0 * x_ref[...].astype(jnp.float32)).astype(jnp.bfloat16)
        total = doubled.astype(jnp.float32) + y_ref[...].astype(jnp.float32)
        out_ref[...] = total.astype(out_ref.dtype)

    return _pipelined(x, y, block, buffers, no_pipelining, mode, body=body)


def pipeline_writes_one_tile_of_a_block(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """The body knows blocks of eight rows only; larger ones keep what was in the slot."""

    def body(x_ref, y_ref, out_ref):
        total = 2.0 * x_ref[:8, :].astype(jnp.float32) + y_ref[:8, :].astype(jnp.float32)
        out_ref[:8, :] = total.astype(out_ref.dtype)

    return _pipelined(x, y, block, buffers, no_pipelining, mode, body=body)


def pipeline_wrong_with_three_slots(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """With three slots x is taken one block ahead of y."""
    rows, _ = block_counts(x.shape, block)
    if buffers == 2:
        return _pipelined(x, y, block, buffers, no_pipelining, mode)
    ahead = _pipelined(x, y, block, buffers, no_pipelining, mode, x_map=lambda i, j: ((i + 1) % rows, j))
    return ahead


def pipeline_wrong_when_synchronous(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """The synchronous form leaves the factor out."""

    def body(x_ref, y_ref, out_ref):
        out_ref[...] = (x_ref[...].astype(jnp.float32) + y_ref[...].astype(jnp.float32)).astype(out_ref.dtype)

    chosen = body if no_pipelining else axpy_block
    return _pipelined(x, y, block, buffers, no_pipelining, mode, body=chosen)


def pipeline_uncropped(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Pads, and hands the padding back as part of the result."""
    x, y = pad_to_blocks(x, block), pad_to_blocks(y, block)
    return _pipelined(x, y, block, buffers, no_pipelining, mode)
