"""A two-layer network's training step, with the bias and ReLU between its layers as the part that a kernel could do.

    kernel-audit run examples/mlp.py

The kernel is the built-in one; the step, its reference and its data are in this file.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from kernel_audit import audit, baseline, complete_step, exact, step_time

RATE = 0.01


def bias_relu(x, bias):
    return jnp.maximum(x + bias, 0)


def bias_relu_host(x, bias):
    return np.maximum(x + bias, 0)


def step(local, mesh, counts=None):
    """max(X W1 + b1, 0) W2 against y, mean over the examples of the squared distance; rows of X and y over all devices."""
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
        inside = None
        if counts is not None:
            with jax.named_scope("region.padding-and-cropping"):
                inside = jnp.arange(X.shape[0]) < jnp.asarray(counts)[jax.lax.axis_index(axes)]
                X = jnp.where(inside[:, None], X, 0)

        def squares(W1, b1, W2):
            hidden = activation(jnp.dot(X, W1, precision="highest"), b1)
            distance = jnp.dot(hidden, W2, precision="highest") - y
            if inside is not None:
                distance = jnp.where(inside[:, None], distance, 0)
            return jnp.sum(jnp.square(distance))

        with jax.named_scope("region.local-arithmetic"):
            sums = jax.value_and_grad(squares, argnums=(0, 1, 2))(W1, b1, W2)
        with jax.named_scope("region.communication"):
            loss, gradients = jax.lax.psum(sums, axes)
        examples = sum(counts) if counts is not None else X.shape[0] * mesh.size
        with jax.named_scope("region.update"):
            gradients = [each / examples for each in gradients]
            moved = [each - RATE * slope for each, slope in zip((W1, b1, W2), gradients, strict=True)]
        return (*moved, loss / examples, *gradients)

    specs = (P(axes), P(), P(), P(), P(axes))
    made = jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(),) * 7, check_vma=False)
    return made, specs


def host(X, W1, b1, W2, y):
    """The same by hand, one product after the other."""
    before = X @ W1 + b1
    hidden = np.maximum(before, 0)
    distance = hidden @ W2 - y
    slope = 2 / len(X) * distance
    gradients = {"W2": hidden.T @ slope}
    slope = (slope @ W2.T) * (before > 0)
    gradients |= {"W1": X.T @ slope, "b1": slope.sum(axis=0)}
    state = {"W1": W1, "b1": b1, "W2": W2}
    return np.mean(np.sum(distance**2, axis=1)), gradients, {key: state[key] - RATE * gradients[key] for key in state}


def inputs(rng, dims):
    """X standard normal, y = 0.1 X v + 0.1 e; W1 and W2 normal over the square root of their rows, b1 = 0.1 normal."""
    n, k, h, o = (dims[name] for name in ("n", "k", "h", "o"))
    X = rng.standard_normal((n, k))
    y = 0.1 * X @ rng.standard_normal((k, o)) + 0.1 * rng.standard_normal((n, o))
    W1 = rng.standard_normal((k, h)) / np.sqrt(k)
    b1, W2 = 0.1 * rng.standard_normal(h), rng.standard_normal((h, o)) / np.sqrt(h)
    return {"X": X, "W1": W1, "b1": b1, "W2": W2, "y": y}


audit(
    name="mlp-activation",
    candidate="kernel_audit.kernels.fused_bias_relu:fused_bias_relu",
    baselines=[baseline(bias_relu, strong="one line, which the compiler fuses with the product before it")],
    args=["x: f32[m=64, n=256]", "bias: f32[n]"],
    results=["out: f32[m, n]"],
    vary={"m": any, "n": any},
    agreement=exact(),
    oracle=bias_relu_host,
    tuning={"block": [(8, 128)]},
    workload=complete_step(
        step,
        host=host,
        inputs=inputs,
        args=["X: f32[n=65536, k=512]", "W1: f32[k, h=2048]", "b1: f32[h]", "W2: f32[h, o=256]", "y: f32[n, o]"],
        dims={"n": 4096, "k": 24, "h": 40, "o": 8},
        examples="n",
        state={"W1": 0, "b1": 1, "W2": 2},
        loss=3,
        gradient={"W1": 4, "b1": 5, "W2": 6},
        region="activation",
    ),
    worth=step_time("mlp.py:step", 0.02),
    part="the activation between the two layers",
    prediction="no gain: the compiler fuses bias and ReLU with the product, and a kernel keeps it from doing so",
)
