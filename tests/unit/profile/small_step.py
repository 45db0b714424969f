"""An audit of a step small enough to be profiled in a test: layers in a scan, uneven examples, every region."""

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec

from kernel_audit import audit, baseline, complete_step, step_time


def squashed(z, b):
    """The baseline."""
    return jnp.tanh(z + b)


def step(local, mesh, counts=None, *, rate=0.1):
    """Four layers, the local part in each; gradients of all layers in one sum over the devices."""
    axes = tuple(mesh.axis_names)
    split, whole = PartitionSpec(axes), PartitionSpec()

    def loss(W, x, inside):
        def layer(h, w):
            return checkpoint_name(local(checkpoint_name(h @ w, "pre"), h), "out"), None

        return jnp.sum(jnp.square(jnp.where(inside[:, None], jax.lax.scan(layer, x, W)[0] - x, 0)))

    def shard(W, x):
        with jax.named_scope("region.padding-and-cropping"):
            rows = x.shape[0] if counts is None else jnp.asarray(counts)[jax.lax.axis_index(axes)]
            inside = jnp.arange(x.shape[0]) < rows
        with jax.named_scope("region.local-arithmetic"):
            found = jax.value_and_grad(loss)(W, x, inside)
        with jax.named_scope("region.communication"):
            return jax.lax.psum(found, axes)

    mapped = jax.shard_map(shard, mesh=mesh, in_specs=(whole, split), out_specs=whole, check_vma=False)

    def taken(W, x):
        total, gradient = mapped(W, x)
        with jax.named_scope("region.update"):
            return W - rate / x.shape[0] * gradient, total / x.shape[0]

    return taken, (whole, split)


@audit(
    baselines=[baseline("small_step.py:squashed", strong="one fused loop")],
    args=["z: f32[n=64, d=32]", "b: f32[n, d]"],
    vary={"n": any},
    worth=step_time("small_step.py:step", 0.1),
    workload=complete_step(
        "small_step.py:step",
        args=["W: f32[l=4, d, d]", "x: f32[n=61, d=32]"],
        examples="n",
        state={"W": 0},
        loss=1,
    ),
    part="the activation of each layer",
)
def small(z, b):
    """The candidate."""
    return jnp.tanh(b + z)
