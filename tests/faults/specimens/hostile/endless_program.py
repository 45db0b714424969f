"""The program itself never ends when it runs."""

import jax
import jax.numpy as jnp

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def axpy(x, y, block=(2, 4)):
    forever = jax.lax.while_loop(lambda n: n >= 0, lambda n: (n + 1) % 1024, jnp.int32(0))
    return blocked_axpy(x, y, block=block) + (0 * forever).astype(x.dtype)
