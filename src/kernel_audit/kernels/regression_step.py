"""The complete sharded step of the regression: rows split over devices, one reduction over all of them, new weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

__all__ = ["LEARNING_RATE", "regression_step"]

LEARNING_RATE = 0.1
Local = Callable[[jax.Array, jax.Array, jax.Array], tuple[jax.Array, jax.Array]]
Step = Callable[[jax.Array, jax.Array, jax.Array], tuple[jax.Array, jax.Array]]


def regression_step(
    local: Local, mesh: Any, *, learning_rate: float = LEARNING_RATE, examples: int | None = None
) -> tuple[Step, tuple[PartitionSpec, PartitionSpec, PartitionSpec]]:
    """(step, specs): one step of gradient descent on L(w) = |Xw - y|^2 / n over a mesh, and how its operands are laid out.

    `local` gives (sum(r^2), 2 X^T r) of one device's rows: the kernel, or a baseline. `mesh` is a Mesh or an AbstractMesh; the
    rows of X and y are split over all its axes, w is on every device. `step(X, w, y)` gives (new w, loss at the old w), float32
    and equal on every device. The gradient and the sum of squares travel in one all-reduce of d + 1 float32. `examples` is the
    number of rows that count, where rows of zeros, which add nothing, fill up the last devices; None: all of them.

    The step raises ValueError for rows that do not split evenly over the devices: fill them up with zeros, and say `examples`.
    """
    axes = tuple(mesh.axis_names)
    rows, everywhere = PartitionSpec(axes), PartitionSpec()

    def sums(X: jax.Array, w: jax.Array, y: jax.Array) -> jax.Array:
        squares, gradient = local(X, w, y)
        return jax.lax.psum(jnp.append(gradient, squares), axes)

    # `check_vma` would need the kernel to say over which axes its results vary; that the sum is there is checked by comparing
    # the copies on all devices.
    summed = jax.shard_map(sums, mesh=mesh, in_specs=(rows, everywhere, rows), out_specs=everywhere, check_vma=False)

    def step(X: jax.Array, w: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        if X.shape[0] % mesh.size:
            raise ValueError(
                f"{X.shape[0]} rows do not split evenly over {mesh.size} devices: fill up with rows of zeros, and say examples="
            )
        count = X.shape[0] if examples is None else examples
        total = summed(X, w, y)
        return w - (learning_rate / count) * total[:-1], total[-1] / count

    return step, (rows, everywhere, rows)
