"""max(x + bias, 0): a bias on the wrong axis, stages exchanged, values lost at the boundary, refusals missing."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from kernel_audit.kernels.axpy_block import block_counts, crop, pad_to_blocks
from kernel_audit.kernels.preconditions import require_block, require_matrix_and_bias, require_mode, require_tpu

TILE = (8, 128)


def _require(x, bias, block, mode):
    require_matrix_and_bias(x, bias)
    require_block(block, multiple_of=TILE)
    require_mode(mode, off_target="interpret")
    if mode == "tpu":
        require_tpu(x, bias)


def _sum(x, bias):
    return x.astype(jnp.float32) + bias.astype(jnp.float32)


def _bias_relu(x, bias):
    return jnp.maximum(_sum(x, bias), 0.0)


def _launch(x, bias, block, mode, arithmetic=_bias_relu, *, bias_map=lambda i, j: (0, j), grid=None, out_dtype=None):
    """`arithmetic` on each block of x and the part of the bias that `bias_map` gives it."""

    def body(x_ref, bias_ref, out_ref):
        out_ref[...] = arithmetic(x_ref[...], bias_ref[...]).astype(out_ref.dtype)

    x_padded = pad_to_blocks(x, block)
    tile = pl.BlockSpec(block, lambda i, j: (i, j))
    padded = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, out_dtype or x.dtype),
        grid=grid or block_counts(x.shape, block),
        in_specs=(tile, pl.BlockSpec((1, block[1]), bias_map)),
        out_specs=tile,
        interpret=mode != "tpu",
    )(x_padded, pad_to_blocks(bias.reshape(1, -1), (1, block[1])))
    return crop(padded, x.shape)


# Axes -------------------------------------------------------------------------------------------------------------


def bias_along_rows(x, bias, block=TILE, mode="interpret"):
    """The bias follows the rows, repeated or cut to their number."""
    _require(x, bias, block, mode)
    column = pad_to_blocks(jnp.resize(bias, (x.shape[0], 1)), (block[0], 1))
    x_padded = pad_to_blocks(x, block)
    tile = pl.BlockSpec(block, lambda i, j: (i, j))

    def body(x_ref, bias_ref, out_ref):
        out_ref[...] = _bias_relu(x_ref[...], bias_ref[...]).astype(out_ref.dtype)

    padded = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        grid=block_counts(x.shape, block),
        in_specs=(tile, pl.BlockSpec((block[0], 1), lambda i, j: (i, 0))),
        out_specs=tile,
        interpret=mode != "tpu",
    )(x_padded, column)
    return crop(padded, x.shape)


def bias_stays_at_first_block(x, bias, block=TILE, mode="interpret"):
    """Every column of blocks gets the bias of the first."""
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode, bias_map=lambda i, j: (0, 0))


def bias_block_from_the_row_index(x, bias, block=TILE, mode="interpret"):
    """The map of the bias takes the row of blocks for the column: right on the diagonal."""
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode, bias_map=lambda i, j: (0, i))


def one_bias_for_all(x, bias, block=TILE, mode="interpret"):
    """The first entry of each block of the bias serves all its columns."""
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode, lambda x, bias: _bias_relu(x, bias[:, :1]))


def bias_tail_left_zero(x, bias, block=TILE, mode="interpret"):
    """The part of the bias beyond the last whole block is dropped."""
    _require(x, bias, block, mode)
    whole = x.shape[1] // block[1] * block[1]
    return _launch(x, jnp.where(jnp.arange(x.shape[1]) < whole, bias, 0), block, mode)


def bias_grid_is_floor(x, bias, block=TILE, mode="interpret"):
    """Partial blocks are never visited."""
    _require(x, bias, block, mode)
    rows, columns = (max(1, size // unit) for size, unit in zip(x.shape, block, strict=True))
    return _launch(x, bias, block, mode, grid=(rows, columns))


# Stages and values ------------------------------------------------------------------------------------------------


def relu_before_the_bias(x, bias, block=TILE, mode="interpret"):
    """max(x, 0) + bias."""
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode, lambda x, bias: _sum(jnp.maximum(x, 0), bias))


def relu_left_out(x, bias, block=TILE, mode="interpret"):
    """x + bias."""
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode, _sum)


def relu_leaks(x, bias, block=TILE, mode="interpret"):
    """A hundredth of what is negative comes through."""
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode, lambda x, bias: jnp.maximum(_sum(x, bias), 0.01 * _sum(x, bias)))


def relu_turns_nan_to_zero(x, bias, block=TILE, mode="interpret"):
    """A ReLU by comparison: NaN is not above zero."""
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode, lambda x, bias: jnp.where(_sum(x, bias) > 0, _sum(x, bias), 0.0))


def relu_cuts_tiny_sums(x, bias, block=TILE, mode="interpret"):
    """Sums up to a hundred-thousandth count as zero: only cancellation comes so close."""
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode, lambda x, bias: jnp.where(_sum(x, bias) <= 1e-5, 0.0, _sum(x, bias)))


def relu_caps_at_six(x, bias, block=TILE, mode="interpret"):
    """Another activation, equal on nearly all ordinary values."""
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode, lambda x, bias: jnp.minimum(_bias_relu(x, bias), 6.0))


def bias_rounded_early(x, bias, block=TILE, mode="interpret"):
    """The bias goes through bfloat16 on its way."""
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode, lambda x, bias: _bias_relu(x, bias.astype(jnp.bfloat16)))


def bias_sum_rounded_early(x, bias, block=TILE, mode="interpret"):
    """The sum goes through bfloat16 before the ReLU."""
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode, lambda x, bias: jnp.maximum(_sum(x, bias).astype(jnp.bfloat16), 0))


def bias_result_in_float32(x, bias, block=TILE, mode="interpret"):
    """The last cast is missing."""
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode, out_dtype=jnp.float32)


# Refusals ---------------------------------------------------------------------------------------------------------


def bias_of_another_dtype_accepted(x, bias, block=TILE, mode="interpret"):
    """The bias is cast to the dtype of the matrix."""
    if getattr(bias, "shape", None) == x.shape[1:]:
        bias = bias.astype(x.dtype)
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode)


def bias_of_one_entry_stretched(x, bias, block=TILE, mode="interpret"):
    """A bias of one entry serves every column."""
    if getattr(bias, "shape", None) == (1,):
        bias = jnp.broadcast_to(bias, x.shape[1:])
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode)


def bias_cut_to_the_columns(x, bias, block=TILE, mode="interpret"):
    """What is too long is cut."""
    if len(getattr(bias, "shape", ())) == 1 and len(x.shape) == 2:
        bias = bias[: x.shape[1]]
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode)


def bias_as_a_row_accepted(x, bias, block=TILE, mode="interpret"):
    """(1, n) counts as (n,)."""
    if len(getattr(bias, "shape", ())) == 2 and bias.shape[0] == 1:
        bias = bias[0]
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode)


def bias_part_tiles_accepted_off_target(x, bias, block=TILE, mode="interpret"):
    """The tile of a TPU is asked for in mode "tpu" only."""
    require_matrix_and_bias(x, bias)
    require_block(block)
    require_mode(mode, off_target="interpret")
    if mode == "tpu":
        require_block(block, multiple_of=TILE)
        require_tpu(x, bias)
    return _launch(x, bias, block, mode)


def bias_target_mode_falls_back(x, bias, block=TILE, mode="interpret"):
    """Mode "tpu" without a TPU interprets."""
    _require(x, bias, block, "interpret" if mode == "tpu" else mode)
    return _launch(x, bias, block, mode)


# Honest -----------------------------------------------------------------------------------------------------------


def bias_columns_first(x, bias, block=TILE, mode="interpret"):
    """Another loop order."""
    _require(x, bias, block, mode)
    x_padded = pad_to_blocks(x, block)
    rows, columns = block_counts(x.shape, block)
    tile = pl.BlockSpec(block, lambda j, i: (i, j))

    def body(x_ref, bias_ref, out_ref):
        out_ref[...] = _bias_relu(x_ref[...], bias_ref[...]).astype(out_ref.dtype)

    padded = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        grid=(columns, rows),
        in_specs=(tile, pl.BlockSpec((1, block[1]), lambda j, i: (0, j))),
        out_specs=tile,
        interpret=mode != "tpu",
    )(x_padded, pad_to_blocks(bias.reshape(1, -1), (1, block[1])))
    return crop(padded, x.shape)


def bias_unpadded(x, bias, block=TILE, mode="interpret"):
    """Tails are left to Pallas, and the bias keeps its one dimension."""
    _require(x, bias, block, mode)
    tile = pl.BlockSpec(block, lambda i, j: (i, j))

    def body(x_ref, bias_ref, out_ref):
        out_ref[...] = _bias_relu(x_ref[...], bias_ref[...]).astype(out_ref.dtype)

    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=block_counts(x.shape, block),
        in_specs=(tile, pl.BlockSpec((block[1],), lambda i, j: (j,))),
        out_specs=tile,
        interpret=mode != "tpu",
    )(x, bias)


def relu_of_the_library(x, bias, block=TILE, mode="interpret"):
    """jax.nn.relu in the body."""
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode, lambda x, bias: jax.nn.relu(_sum(x, bias)))


def relu_keeps_nan_by_comparison(x, bias, block=TILE, mode="interpret"):
    """What is below zero is replaced, and NaN is not below zero; a zero keeps its sign."""
    _require(x, bias, block, mode)
    return _launch(x, bias, block, mode, lambda x, bias: jnp.where(_sum(x, bias) < 0, 0.0, _sum(x, bias)))
