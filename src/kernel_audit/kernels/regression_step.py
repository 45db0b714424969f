"""The complete sharded step of the regression: rows split over devices, one reduction over all of them, new weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

from kernel_audit.kernels.regression_host import LEARNING_RATE

__all__ = ["regression_step"]

Local = Callable[[jax.Array, jax.Array, jax.Array], tuple[jax.Array, jax.Array]]
Step = Callable[[jax.Array, jax.Array, jax.Array], tuple[jax.Array, jax.Array, jax.Array]]


def regression_step(
    local: Local, mesh: Any, counts: Sequence[int] | None = None, *, learning_rate: float = LEARNING_RATE
) -> tuple[Step, tuple[PartitionSpec, PartitionSpec, PartitionSpec]]:
    """(step, specs): one step of gradient descent on L(w) = |Xw - y|^2 / n over a mesh, and how its operands are laid out.

    `local` gives (sum(r^2), 2 X^T r) of one device's rows: the kernel, or a baseline. `mesh` is a Mesh or an AbstractMesh; the
    rows of X and y are split over all its axes, w is on every device. `step(X, w, y)` gives (new w, loss at the old w, gradient
    at the old w), float32 and equal on every device. Gradient and sum of squares travel in one all-reduce of d + 1 float32.

    `counts` says how many rows of each device's block are examples, blocks in the order of the rows of X; what lies in the rows
    beyond does not matter. None: all rows are, and nothing is selected.

    The step raises ValueError for rows that do not split evenly over the devices: fill them up, and say `counts`.
    """
    axes = tuple(mesh.axis_names)
    rows, everywhere = PartitionSpec(axes), PartitionSpec()

    def counted(X: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        if counts is None:
            return X, y
        with jax.named_scope("region.padding-and-cropping"):  # selected, not multiplied: zero times NaN is NaN
            inside = jnp.arange(X.shape[0]) < jnp.asarray(counts)[jax.lax.axis_index(axes)]
            return jnp.where(inside[:, None], X, 0), jnp.where(inside, y, 0)

    def sums(X: jax.Array, w: jax.Array, y: jax.Array) -> jax.Array:
        X, y = counted(X, y)
        with jax.named_scope("region.local-arithmetic"):
            squares, gradient = local(X, w, y)
        with jax.named_scope("region.communication"):
            return jax.lax.psum(jnp.append(gradient, squares), axes)

    # `check_vma` would need the kernel to say over which axes its results vary; that the sum is there is checked by comparing
    # the copies on all devices.
    summed = jax.shard_map(sums, mesh=mesh, in_specs=(rows, everywhere, rows), out_specs=everywhere, check_vma=False)

    def step(X: jax.Array, w: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        if X.shape[0] % mesh.size:
            raise ValueError(
                f"{X.shape[0]} rows do not split evenly over {mesh.size} devices: fill up with any rows, and say counts="
            )
        examples = X.shape[0] if counts is None else sum(counts)
        total = summed(X, w, y)
        with jax.named_scope("region.update"):
            gradient, loss = total[:-1] / examples, total[-1] / examples
            return w - learning_rate * gradient, loss, gradient

    return step, (rows, everywhere, rows)
