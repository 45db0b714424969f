"""JAX's grouped matrix product for TPUs (megablox), as it ships: index maps that group sizes drive.

The sizes of the groups are constants here, so that which blocks are visited is known before anything runs.
"""

import functools

import jax.numpy as jnp
import numpy as np
from jax.experimental.pallas.ops.tpu.megablox.gmm import gmm

from kernel_audit import audit, built_by

GROUPS = (100, 0, 156, 256)


def make(*, tiling):
    """`gmm` for these groups, the rows of `left` in order."""
    sizes = np.array(GROUPS, np.int32)
    return functools.partial(_product, sizes=sizes, tiling=tiling)


def _product(left, right, *, sizes, tiling):
    return gmm(left, right, jnp.asarray(sizes), jnp.float32, tiling)


audit(
    name="megablox-gmm",
    candidate=built_by(make),
    args=["left: bf16[m=512, k=256]", "right: bf16[g=4, k, n=256]"],
    tuning={"tiling": [(128, 128, 128), (128, 256, 128)]},
    targets=["tpu:v5e", "tpu:v6e"],
)
