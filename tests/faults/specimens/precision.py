"""Casts and precision: rounded too early, in too narrow a type, not at all, or with a value changed on the
way.
"""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from kernel_audit.kernels.axpy_block import block_counts, crop, pad_to_blocks
from kernel_audit.kernels.preconditions import require_block, require_matrices


def _elementwise(x, y, block, arithmetic, out_dtype=None):
    """`arithmetic` on each block of x and y as stored; the result is cast to `out_dtype` (that of x)."""
    require_matrices(x, y)
    require_block(block)

    def body(x_ref, y_ref, out_ref):
        out_ref[...] = arithmetic(x_ref[...], y_ref[...]).astype(out_ref.dtype)

    tile = pl.BlockSpec(block, lambda i, j: (i, j))
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    padded = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, out_dtype or x.dtype),
        grid=block_counts(x.shape, block),
        in_specs=(tile, tile),
        out_specs=tile,
    )(x_padded, y_padded)
    return crop(padded, x.shape)


def _axpy(x, y):
    return 2.0 * x.astype(jnp.float32) + y.astype(jnp.float32)


def rounded_before_the_addition(x, y, block=(2, 4)):
    """2x goes through bfloat16 first: wrong in float32, exact in bfloat16."""

    def arithmetic(x, y):
        doubled = (2.0 * x.astype(jnp.float32)).astype(jnp.bfloat16)
        return doubled.astype(jnp.float32) + y.astype(jnp.float32)

    return _elementwise(x, y, block, arithmetic)


def second_operand_rounded(x, y, block=(2, 4)):
    """y goes through bfloat16 first."""
    return _elementwise(x, y, block, lambda x, y: _axpy(x, y.astype(jnp.bfloat16)))


def bfloat16_arithmetic(x, y, block=(2, 4)):
    """All arithmetic in bfloat16, whatever the operands are."""
    return _elementwise(x, y, block, lambda x, y: 2 * x.astype(jnp.bfloat16) + y.astype(jnp.bfloat16))


def rounded_after_the_addition(x, y, block=(2, 4)):
    """The sum goes through bfloat16 on its way to float32."""
    return _elementwise(x, y, block, lambda x, y: _axpy(x, y).astype(jnp.bfloat16))


def float16_arithmetic(x, y, block=(2, 4)):
    """All arithmetic in float16: more digits than bfloat16 and far less range."""
    return _elementwise(x, y, block, lambda x, y: 2 * x.astype(jnp.float16) + y.astype(jnp.float16))


def result_not_cast_back(x, y, block=(2, 4)):
    """bfloat16 operands give a float32 result."""
    return _elementwise(x, y, block, _axpy, out_dtype=jnp.float32)


def result_always_bfloat16(x, y, block=(2, 4)):
    """float32 operands give a bfloat16 result."""
    return _elementwise(x, y, block, _axpy, out_dtype=jnp.bfloat16)


def result_truncated(x, y, block=(2, 4)):
    """The bfloat16 result keeps the upper half of the bits: rounded towards zero, not to nearest."""

    def arithmetic(x, y):
        total = _axpy(x, y)
        if x.dtype == jnp.float32:
            return total
        bits = jax.lax.bitcast_convert_type(total, jnp.uint32) & jnp.uint32(0xFFFF0000)
        return jax.lax.bitcast_convert_type(bits, jnp.float32)

    return _elementwise(x, y, block, arithmetic)


def factor_one_ulp_off(x, y, block=(2, 4)):
    """2 is the next float32 above it; bfloat16 results rarely show it."""
    return _elementwise(x, y, block, lambda x, y: _axpy(x, y) + 2.0**-22 * x.astype(jnp.float32))


def wrong_factor(x, y, block=(2, 4)):
    """x + y."""
    return _elementwise(x, y, block, lambda x, y: x.astype(jnp.float32) + y.astype(jnp.float32))
