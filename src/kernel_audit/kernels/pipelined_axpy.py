"""2x + y as a pipeline of copies: whole matrices in the device's main memory, blocks in its fast memory.

The outer kernel sees global references only; `emit_pipeline` moves one block after another into input
slots, and results out of output slots. `axpy_pipeline` builds it for any block and any slots;
`pipelined_axpy` is that behind a guard.
"""

from __future__ import annotations

import contextlib
import inspect

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from .axpy_block import axpy_block, block_counts, crop, pad_to_blocks
from .preconditions import (
    require_block,
    require_buffers,
    require_flag,
    require_matrices,
    require_mode,
    require_tpu,
)

__all__ = ["axpy_pipeline", "pipelined_axpy"]

TILE = (8, 128)
OUTPUT_SLOTS = 2
SIMULATED_DEVICE = "TPU v5 lite"
# The default clock is so small that two copies into one buffer share a slot and their race goes unseen.
VECTOR_CLOCK_SIZE = 256


def pipelined_axpy(
    x: jax.Array,
    y: jax.Array,
    block: tuple[int, int] = (8, 128),
    buffers: int = 2,
    no_pipelining: bool = False,
    mode: str = "simulate",
) -> jax.Array:
    """2x + y for two matrices of one shape and dtype, float32 or bfloat16; the result has both.

    Arithmetic is float32 with one cast at the end. `block` (rows, columns) is a multiple of (8, 128);
    operands are padded to whole blocks and the result is cropped. `buffers` is the number of slots of each
    input, 2 or 3; `no_pipelining` makes every copy synchronous. Mode "simulate" runs in the TPU interpreter
    with race detection, for a described "TPU v5 lite"; mode "tpu" runs on a TPU and nowhere else.

    Raises ValueError, before launch, for operands that differ, are empty, of another rank or dtype, and for
    a block, buffer count, flag or mode that is not supported; RuntimeError in mode "tpu" without a TPU or
    without operands on it.
    """
    require_matrices(x, y)
    require_block(block, multiple_of=TILE)
    require_buffers(buffers)
    require_flag("no_pipelining", no_pipelining)
    require_mode(mode)
    interpret, device = _on_target(x, y) if mode == "tpu" else _simulated()
    with device:
        return axpy_pipeline(x, y, block, buffers, no_pipelining, interpret=interpret)


def axpy_pipeline(
    x: jax.Array,
    y: jax.Array,
    block: tuple[int, int] = (8, 128),
    buffers: int = 2,
    no_pipelining: bool = False,
    output_buffers: int = OUTPUT_SLOTS,
    *,
    interpret: bool | pltpu.InterpretParams = False,
) -> jax.Array:
    """2x + y as `pipelined_axpy` builds it, without its guard: any block, any number of slots.

    What it is asked for may be refused by JAX or by a compiler, or be wrong: it is there to ask them.
    """
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    grid = block_counts(x.shape, block)
    padded = pl.pallas_call(
        _pipeline(grid, tuple(block), buffers, no_pipelining, output_buffers),
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        in_specs=(pl.BlockSpec(memory_space=pl.ANY), pl.BlockSpec(memory_space=pl.ANY)),
        out_specs=pl.BlockSpec(memory_space=pl.ANY),
        interpret=interpret,
        name="pipelined_axpy",
    )(x_padded, y_padded)
    return crop(padded, x.shape)


def _pipeline(grid: tuple[int, int], block: tuple[int, int], buffers: int, no_pipelining: bool, output_buffers: int):
    """The outer kernel: global references in, one pipeline over `grid` inside."""

    def tile(slots: int) -> pl.BlockSpec:
        return pl.BlockSpec(block, lambda i, j: (i, j), pipeline_mode=pl.Buffered(buffer_count=slots))

    def whole_matrices(x_ref, y_ref, out_ref) -> None:
        pltpu.emit_pipeline(
            axpy_block,
            grid=grid,
            in_specs=(tile(buffers), tile(buffers)),
            out_specs=tile(output_buffers),
            no_pipelining=no_pipelining,
        )(x_ref, y_ref, out_ref)

    return whole_matrices


def _on_target(*operands: jax.Array) -> tuple[bool, contextlib.AbstractContextManager]:
    """`interpret`, and nothing to describe: the device is there, or RuntimeError is raised."""
    require_tpu(*operands)
    return False, contextlib.nullcontext()


def _simulated() -> tuple[pltpu.InterpretParams, contextlib.AbstractContextManager]:
    """`interpret`, and a description of the device."""
    return pltpu.InterpretParams(detect_races=True, vector_clock_size=VECTOR_CLOCK_SIZE), _simulated_device()


def _simulated_device() -> contextlib.AbstractContextManager:
    """A TPU for `emit_pipeline` to lay its buffers out for, described only where nothing else describes
    one.

    A mesh entered while tracing shows in the shapes of the trace, so that a program captured for a
    described device would differ from the same program captured for a real one.
    """
    try:
        pltpu.get_tpu_info()
    except ValueError:
        return jax.sharding.use_abstract_mesh(_simulated_mesh())
    return contextlib.nullcontext()


def _simulated_mesh() -> jax.sharding.AbstractMesh:
    described = {"device_kind": SIMULATED_DEVICE, "num_cores": 1}
    if "platform" in inspect.signature(jax.sharding.AbstractDevice).parameters:
        described["platform"] = "tpu"
    return jax.sharding.AbstractMesh(
        (1,),
        ("simulated_device",),
        # Explicit axes, the default from jax 0.11, refuse operands that are not committed to a device.
        axis_types=(jax.sharding.AxisType.Auto,),
        abstract_device=jax.sharding.AbstractDevice(**described),
    )
