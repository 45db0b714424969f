"""The program itself asks for 64 GiB when it runs."""

import jax
import jax.numpy as jnp

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def axpy(x, y, block=(2, 4)):
    # The state of a loop is an array in memory; no compiler can do without it.
    def write(state):
        count, hoard = state
        return count + 1, hoard.at[count % 16, 0].set(count.astype(jnp.float32))

    start = (jnp.int32(0), jnp.broadcast_to(y.astype(jnp.float32).ravel()[0], (16, 2**30)))
    count, hoard = jax.lax.while_loop(lambda state: state[1][state[0] % 16, 0] != 1e38, write, start)
    return blocked_axpy(x, y, block=block) + (hoard[count % 16, 0] * 0).astype(x.dtype)
