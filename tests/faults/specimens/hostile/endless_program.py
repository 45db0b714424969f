"""The program itself never ends when it runs."""

import jax
import jax.numpy as jnp

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def axpy(x, y, block=(2, 4)):
    # No number is negative after the remainder, which a compiler does not find out: it must run the loop.
    forever = jax.lax.while_loop(lambda n: n >= 0, lambda n: (n * 5 + 3) % 1021, jnp.int32(x.size))
    return blocked_axpy(x, y, block=block) + (forever < 0).astype(x.dtype)
