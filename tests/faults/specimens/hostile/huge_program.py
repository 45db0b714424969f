"""The program itself asks for 64 GiB when it runs."""

import jax
import jax.numpy as jnp

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def axpy(x, y, block=(2, 4)):
    hoard = jax.lax.optimization_barrier(jnp.full((16 * 2**30,), x[0, 0], jnp.float32))
    zero = jnp.minimum(jnp.abs(hoard[::4096].sum()), 0)
    return blocked_axpy(x, y, block=block) + zero.astype(x.dtype)
