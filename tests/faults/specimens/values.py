"""Values: right for ordinary samples, wrong for zeros, infinities, large, small or very equal numbers."""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

from kernel_audit.kernels.axpy_block import block_counts, crop, pad_to_blocks
from kernel_audit.kernels.preconditions import require_block, require_matrices


def _axpy(x, y):
    return 2.0 * x.astype(jnp.float32) + y.astype(jnp.float32)


def _elementwise(x, y, block, arithmetic):
    require_matrices(x, y)
    require_block(block)

    def body(x_ref, y_ref, out_ref):
        out_ref[...] = arithmetic(x_ref[...], y_ref[...]).astype(out_ref.dtype)

    tile = pl.BlockSpec(block, lambda i, j: (i, j))
    x_padded, y_padded = pad_to_blocks(x, block), pad_to_blocks(y, block)
    padded = pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x_padded.shape, x.dtype),
        grid=block_counts(x.shape, block),
        in_specs=(tile, tile),
        out_specs=tile,
    )(x_padded, y_padded)
    return crop(padded, x.shape)


def nan_becomes_zero(x, y, block=(2, 4)):
    """A NaN in an operand comes out as a number."""

    def arithmetic(x, y):
        total = _axpy(x, y)
        return jnp.where(jnp.isnan(total), 0.0, total)

    return _elementwise(x, y, block, arithmetic)


def infinity_becomes_large(x, y, block=(2, 4)):
    """An infinite sum is replaced by the largest finite number."""
    largest = float(jnp.finfo(jnp.bfloat16).max)

    def arithmetic(x, y):
        total = _axpy(x, y)
        return jnp.where(jnp.isinf(total), jnp.sign(total) * largest, total)

    return _elementwise(x, y, block, arithmetic)


def saturated(x, y, block=(2, 4)):
    """Sums are cut at 1e30, which no normal sample reaches."""
    return _elementwise(x, y, block, lambda x, y: jnp.clip(_axpy(x, y), -1e30, 1e30))


def negative_zero_lost(x, y, block=(2, 4)):
    """Every zero comes out positive."""

    def arithmetic(x, y):
        total = _axpy(x, y)
        return jnp.where(total == 0, 0.0, total)

    return _elementwise(x, y, block, arithmetic)


def near_zero_cut(x, y, block=(2, 4)):
    """Sums below 0.01 in magnitude become zero, far inside a tolerance chosen by feeling."""

    def arithmetic(x, y):
        total = _axpy(x, y)
        return jnp.where(jnp.abs(total) < 0.01, 0.0, total)

    return _elementwise(x, y, block, arithmetic)


def other_rule_for_large_operands(x, y, block=(2, 4)):
    """From 1e4 on the factor is dropped; normal samples stay below."""

    def arithmetic(x, y):
        wide = x.astype(jnp.float32)
        return jnp.where(jnp.abs(wide) > 1e4, wide + y.astype(jnp.float32), _axpy(x, y))

    return _elementwise(x, y, block, arithmetic)


def cheap_path_for_nominal_data(x, y, block=(2, 4)):
    """Looks at the first row only: nominal data takes bfloat16 arithmetic, anything larger the exact path."""

    def cheap(x, y):
        return (2 * x.astype(jnp.bfloat16) + y.astype(jnp.bfloat16)).astype(x.dtype)

    def exact(x, y):
        return _elementwise(x, y, block, _axpy)

    require_matrices(x, y)
    nominal = jnp.max(jnp.abs(x[0].astype(jnp.float32))) < 1e3
    return jax.lax.cond(nominal, cheap, exact, x, y)


def equal_operands_skipped(x, y, block=(2, 4)):
    """Where 2x and -y agree to five digits the answer is taken to be zero."""

    def arithmetic(x, y):
        doubled, wide = 2.0 * x.astype(jnp.float32), y.astype(jnp.float32)
        near = jnp.abs(doubled + wide) <= 2e-3 * jnp.abs(doubled)
        return jnp.where(near, 0.0, doubled + wide)

    return _elementwise(x, y, block, arithmetic)


def large_matrices_in_bfloat16(x, y, block=(2, 4)):
    """From 100 elements on the arithmetic is bfloat16, where a checker of small shapes does not look."""
    if x.size < 100:
        return _elementwise(x, y, block, _axpy)
    return _elementwise(x, y, block, lambda x, y: _axpy(x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)))


def zeros(x, y, block=(2, 4)):
    """Zeros, which a loose absolute tolerance takes for small answers."""
    return _elementwise(x, y, block, lambda x, y: jnp.zeros_like(x))
