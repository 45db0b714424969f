"""The regression sums on a GPU: each Triton program walks down its own part of the rows and keeps its sums in registers.

The programs' sums go to memory as partial results, one row a program, and are added up outside. Atomic additions would save
that small array and cost the order of the additions: two runs would differ in their last bits, and nobody could tell such a
difference from a race.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

__all__ = ["default_triton_rows", "require_triton_rows", "triton_sums"]

MOST_ELEMENTS = 1 << 14  # of X in one pass of the loop: with more of them registers spill
MOST_PROGRAMS = 512  # about four for each multiprocessor of the largest cards
LEAST_PASSES = 4  # of a program's loop, so that partial results stay small beside X
WARPS = 8
STAGES = 3


def _padded(d: int) -> int:
    """Columns of a program's block: a power of two."""
    return 1 << (d - 1).bit_length()


def default_triton_rows(d: int) -> int:
    """As many rows a pass as registers hold: 16 of 512 columns; at least one, at most 64."""
    return min(max(MOST_ELEMENTS // 2 // _padded(d), 1), 64)


def require_triton_rows(rows: int, d: int) -> None:
    """A power of two whose pass fits into registers. Raises ValueError otherwise."""
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1 or rows & (rows - 1):
        raise ValueError(f"rows must be a power of two in the form 'triton', got {rows!r}")
    if (size := rows * _padded(d)) > MOST_ELEMENTS:
        raise ValueError(
            f"a pass must have at most {MOST_ELEMENTS} elements of X, got {size}: rows {rows}, columns {d}"
        )


def triton_sums(X: jax.Array, w: jax.Array, y: jax.Array, *, rows: int, interpret: bool) -> tuple[jax.Array, jax.Array]:
    """(sum(r^2), 2 X^T r) for r = Xw - y, operands as `regression_gradient` has checked them."""
    n, d = X.shape
    columns, passes = _padded(d), -(-n // rows)
    each = max(-(-passes // MOST_PROGRAMS), LEAST_PASSES)
    programs, span = -(-passes // each), each * rows
    call = pl.pallas_call(
        functools.partial(_partial_sums, n, d, rows),
        grid=(programs,),
        in_specs=(
            pl.BlockSpec((span, columns), lambda i: (i, 0)),
            pl.BlockSpec((columns,), lambda i: (0,)),
            pl.BlockSpec((span,), lambda i: (i,)),
        ),
        out_specs=(pl.BlockSpec((1, columns), lambda i: (i, 0)), pl.BlockSpec((1,), lambda i: (i,))),
        out_shape=(jax.ShapeDtypeStruct((programs, d), jnp.float32), jax.ShapeDtypeStruct((programs,), jnp.float32)),
        compiler_params=plgpu.CompilerParams(num_warps=WARPS, num_stages=STAGES),
        cost_estimate=pl.CostEstimate(
            flops=4 * n * d + 3 * n,
            bytes_accessed=n * d * X.dtype.itemsize + 4 * (n + programs * (2 * d + 1)),
            transcendentals=0,
        ),
        interpret=interpret,
        name="regression_gradient",
    )
    gradients, squares = call(X, w, y)
    return jnp.sum(squares), 2.0 * jnp.sum(gradients, axis=0)


def _partial_sums(n: int, d: int, rows: int, x_ref, w_ref, y_ref, gradient_ref, squares_ref) -> None:
    """One program: `rows` of X at a time, held in registers for both products. Masked loads give zeros, which add nothing."""
    span, columns = x_ref.shape
    first = pl.program_id(0) * span
    inside = jax.lax.broadcasted_iota(jnp.int32, (columns,), 0) < d
    w = plgpu.load(w_ref, mask=inside, other=0.0)
    offsets = jax.lax.broadcasted_iota(jnp.int32, (rows,), 0)

    def add(number, sums):
        gradient, squares = sums
        window = pl.ds(number * rows, rows)
        known = first + number * rows + offsets < n
        x = plgpu.load(x_ref.at[window, :], mask=known[:, None] & inside[None, :], other=0).astype(jnp.float32)
        y = plgpu.load(y_ref.at[window], mask=known, other=0.0)
        residuals = jnp.sum(x * w[None, :], axis=1) - y
        return gradient + jnp.sum(x * residuals[:, None], axis=0), squares + jnp.sum(residuals * residuals)

    start = (jnp.zeros((columns,), jnp.float32), jnp.float32(0))
    gradient, squares = jax.lax.fori_loop(0, span // rows, add, start)
    plgpu.store(gradient_ref, gradient[None, :], mask=inside[None, :])
    squares_ref[0] = squares
