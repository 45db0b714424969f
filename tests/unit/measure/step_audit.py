"""An audit whose complete step takes five operands, options and inputs of its own; and one whose step gives no reference."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from kernel_audit import audit, baseline, complete_step, exact, step_time


def relu(x, bias):
    return jnp.maximum(x + bias, 0)


def also_relu(x, bias):
    return jax.nn.relu(x + bias)


def selected(x, bias):
    return jnp.where(x + bias > 0, x + bias, 0)


def step(local, mesh, counts=None, *, rate):
    """max(X W1 + b1, 0) W2 against y: new W1, new b1, the loss."""
    axes = tuple(mesh.axis_names)

    @jax.custom_vjp
    def activation(x, bias):
        return local(x, bias)

    def forward(x, bias):
        out = local(x, bias)
        return out, out

    def backward(out, slope):
        slope = jnp.where(out > 0, slope, 0)
        return slope, jnp.sum(slope, axis=0)

    activation.defvjp(forward, backward)

    def on_device(X, W1, b1, W2, y):
        def squares(W1, b1):
            hidden = activation(jnp.dot(X, W1, precision="highest"), b1)
            return jnp.sum(jnp.square(jnp.dot(hidden, W2, precision="highest") - y))

        loss, (dW1, db1) = jax.lax.psum(jax.value_and_grad(squares, argnums=(0, 1))(W1, b1), axes)
        n = X.shape[0] * mesh.size
        return W1 - rate * dW1 / n, b1 - rate * db1 / n, loss / n

    specs = (P(axes), P(), P(), P(), P(axes))
    made = jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(),) * 3, check_vma=False)
    return made, specs


def broken_step(local, mesh, counts=None):
    raise ValueError("this step cannot be made")


def inputs(rng, dims):
    """Nowhere near standard normal: X around 3, y around -5."""
    n, k, h, o = (dims[name] for name in ("n", "k", "h", "o"))
    given = {"X": 3 + 0.1 * rng.standard_normal((n, k)), "y": -5 + 0.1 * rng.standard_normal((n, o))}
    return given | {"W1": rng.standard_normal((k, h)) / 8, "b1": np.full(h, 0.25), "W2": np.full((h, o), 0.125)}


def _audit(name, made, **more):
    audit(
        name=name,
        candidate=also_relu,
        baselines=[baseline(relu, strong="one line"), baseline(selected, strong="a select instead of a maximum")],
        args=["x: f32[m=8, n=16]", "bias: f32[n]"],
        results=["out: f32[m, n]"],
        vary={"m": any, "n": any},
        agreement=exact(),
        oracle="kernel_audit.kernels.bias_relu_references:bias_relu_oracle",
        workload=complete_step(
            made,
            inputs=inputs,
            args=["X: f32[n=256, k=12]", "W1: f32[k, h=24]", "b1: f32[h]", "W2: f32[h, o=3]", "y: f32[n, o]"],
            dims={"n": 64},
            examples="n",
            state={"W1": 0, "b1": 1},
            loss=2,
            **more,
        ),
        worth=step_time(f"step_audit.py:{made.__name__}", 0.02),
        targets=["gpu:h200"],
    )


_audit("own-step", step, options={"rate": 0.5})
_audit("broken-step", broken_step)
