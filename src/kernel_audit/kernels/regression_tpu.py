"""The regression sums on a TPU: a grid over blocks of rows, for each its residuals and its part of the gradient.

What limits the kernel is to be the copies of X, never the schedule, so each dtype of X has the products that schedule best
(docs/regression.md): for float32 multiplications and sums on the vector unit, since a matrix unit would take X apart into three
bfloat16 parts in six passes; for bfloat16 one pass of the matrix unit, with the other operand, a single row, in three parts.

Targets and squares are rows, (1, n) and (1, rows): a column in main memory would be laid out anew outside the kernel.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

__all__ = ["LANES", "default_tpu_rows", "require_tpu_rows", "tpu_sums"]

LANES = 128
PART_ROWS = 16  # a tile of bfloat16
BLOCK_BYTES = 1 << 20  # of X: its copy takes longer than a grid step costs, and it is held twice
MOST_BLOCK_BYTES = 4 << 20
MOST_DEFAULT_ROWS = 1024  # the body is straight-line code, so its length grows with the rows


def default_tpu_rows(d: int, dtype: Any) -> int:
    """Rows of a block of about a MiB: 512 for 512 columns of float32, 1,024 for 512 of bfloat16."""
    fitting = BLOCK_BYTES // _row_bytes(d, dtype) // LANES * LANES
    return min(max(fitting, LANES), MOST_DEFAULT_ROWS)


def require_tpu_rows(rows: int, d: int, dtype: Any) -> None:
    """A positive multiple of 128 whose block fits beside its successor. Raises ValueError otherwise."""
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1 or rows % LANES:
        raise ValueError(f"rows must be a positive multiple of {LANES} in the form 'tpu', got {rows!r}")
    if (size := rows * _row_bytes(d, dtype)) > MOST_BLOCK_BYTES:
        raise ValueError(
            f"a block of X must have at most {MOST_BLOCK_BYTES} bytes, got {size}: rows {rows}, columns {d}"
        )


def _row_bytes(d: int, dtype: Any) -> int:
    return -(-d // LANES) * LANES * np.dtype(dtype).itemsize


def tpu_sums(X: jax.Array, w: jax.Array, y: jax.Array, *, rows: int, interpret: bool) -> tuple[jax.Array, jax.Array]:
    """(sum(r^2), 2 X^T r) for r = Xw - y, operands as `regression_gradient` has checked them."""
    n, d = X.shape
    rows = min(rows, -(-n // LANES) * LANES)
    steps = -(-n // rows)
    call = pl.pallas_call(
        functools.partial(_block_sums, steps, n - (steps - 1) * rows),
        grid=(steps,),
        in_specs=(
            pl.BlockSpec((rows, d), lambda i: (i, 0)),
            pl.BlockSpec((1, d), lambda i: (0, 0)),
            pl.BlockSpec((1, rows), lambda i: (0, i)),
        ),
        out_specs=(pl.BlockSpec((1, d), lambda i: (0, 0)), pl.BlockSpec((1, rows), lambda i: (0, 0))),
        out_shape=(jax.ShapeDtypeStruct((1, d), jnp.float32), jax.ShapeDtypeStruct((1, rows), jnp.float32)),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("arbitrary",)),
        cost_estimate=pl.CostEstimate(
            flops=4 * n * d + 3 * n,
            bytes_accessed=n * d * X.dtype.itemsize + 4 * (n + 2 * d + rows),
            transcendentals=0,
        ),
        interpret=interpret,
        name="regression_gradient",
    )
    gradient, squares = call(X, w.reshape(1, d), y.reshape(1, n))
    return jnp.sum(squares), 2.0 * gradient[0]


def _block_sums(steps: int, rows_left: int, x_ref, w_ref, y_ref, gradient_ref, squares_ref) -> None:
    """One grid step: the block's residuals, squared onto those of its predecessors, and its part of the gradient.

    Only the last block has rows beyond the last one, if any: the masks, which cost a third of the schedule, are in its branch.
    """
    step, rows = pl.program_id(0), x_ref.shape[0]

    @pl.when(step == 0)
    def _() -> None:
        gradient_ref[...] = jnp.zeros_like(gradient_ref)
        squares_ref[...] = jnp.zeros_like(squares_ref)

    by_rows, by_columns = _SPLIT if x_ref.dtype == jnp.bfloat16 else _WIDE

    def add(inside: int) -> None:
        x = x_ref[...]
        if inside < rows:  # selected, not multiplied: what lies beyond may be NaN
            known = jax.lax.broadcasted_iota(jnp.int32, x.shape, 0) < inside
            x = jnp.where(known, x.astype(jnp.float32), 0.0).astype(x.dtype)
        residuals = by_rows(x, w_ref[...]) - y_ref[...]
        if inside < rows:
            residuals = jnp.where(jax.lax.broadcasted_iota(jnp.int32, residuals.shape, 1) < inside, residuals, 0.0)
        gradient_ref[...] += by_columns(x, residuals)
        squares_ref[...] += residuals * residuals

    if rows_left == rows or steps == 1:
        add(rows_left)
    else:
        pl.when(step < steps - 1)(lambda: add(rows))
        pl.when(step == steps - 1)(lambda: add(rows_left))


# Products of a block x (rows, d) and a row: with one of d entries to (1, rows), with one of `rows` entries to (1, d).


def _wide_by_rows(x: jax.Array, row: jax.Array) -> jax.Array:
    return jnp.sum(x * row, axis=1, keepdims=True).T


def _wide_by_columns(x: jax.Array, row: jax.Array) -> jax.Array:
    return jnp.sum(x * row.T, axis=0, keepdims=True)


def _split_by_rows(x: jax.Array, row: jax.Array) -> jax.Array:
    return _summed(jax.lax.dot_general(_parts(row), x, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32))


def _split_by_columns(x: jax.Array, row: jax.Array) -> jax.Array:
    return _summed(jax.lax.dot_general(_parts(row), x, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32))


_WIDE, _SPLIT = (_wide_by_rows, _wide_by_columns), (_split_by_rows, _split_by_columns)


def _parts(row: jax.Array) -> jax.Array:
    """A float32 row (1, k) as rows of bfloat16 (16, k) whose sum it is: its bits in three parts of eight, the others zeros.

    Each product of such a part with a bfloat16 is exact in float32. The parts are cut off by a mask of bits, as a conversion
    there and back may be left out by a compiler that is free to be more precise.
    """
    first = _leading(row)
    second = _leading(row - first)
    third = row - first - second
    place = jax.lax.broadcasted_iota(jnp.int32, (PART_ROWS, row.shape[1]), 0)
    parts = jnp.where(place == 0, first, jnp.where(place == 1, second, jnp.where(place == 2, third, 0.0)))
    return parts.astype(jnp.bfloat16)


def _leading(row: jax.Array) -> jax.Array:
    """The eight leading bits of each float32."""
    bits = jax.lax.bitcast_convert_type(row, jnp.int32) & jnp.int32(-(1 << 16))
    return jax.lax.bitcast_convert_type(bits, jnp.float32)


def _summed(products: jax.Array) -> jax.Array:
    return jnp.sum(products, axis=0, keepdims=True)
