"""What the GPU forms of the elementwise kernels share: which elements of a program's block the matrix has, and a launch.

A Triton block has sizes that are powers of two, so most matrices end inside one. Nothing is padded: loads and stores are masked
instead, which costs no second copy of the matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from .axpy_block import block_counts

__all__ = ["inside", "launch"]

WARPS = 4


def inside(shape: tuple[int, int], block: tuple[int, int], axes: tuple[int, int] = (0, 1)) -> jax.Array:
    """bool[block]: which elements of this program's block lie inside a matrix of `shape`.

    `axes` are the grid's axes that its rows and columns follow.
    """
    rows, columns = (
        pl.program_id(axes[dim]) * block[dim] + jax.lax.broadcasted_iota(jnp.int32, block, dim) for dim in (0, 1)
    )
    return (rows < shape[0]) & (columns < shape[1])


def launch(
    body: Callable[..., None],
    operands: Sequence[jax.Array],
    in_specs: Sequence[pl.BlockSpec],
    block: tuple[int, int],
    *,
    name: str,
    interpret: bool,
) -> jax.Array:
    """One program for each block of the first operand, a matrix; the result is like it."""
    shaped = operands[0]
    call: Any = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(shaped.shape, shaped.dtype),
        grid=block_counts(shaped.shape, block),
        in_specs=tuple(in_specs),
        out_specs=pl.BlockSpec(block, lambda i, j: (i, j)),
        compiler_params=plgpu.CompilerParams(num_warps=WARPS),
        interpret=interpret,
        name=name,
    )
    return call(*operands)
