"""Sixteen layers in a scan, each with its intermediate result named for checkpoint policies; bias and ReLU as the candidate.

    kernel-audit run examples/scan16.py
    kernel-audit profile examples/scan16.py --remat all --remat save:activation

A layer is h + max(h U + b, 0) V. `jax.value_and_grad` and `jax.lax.scan` are called through `jax`, so that a policy can be put
on the layers from outside.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import PartitionSpec as P

from kernel_audit import audit, baseline, complete_step, exact, step_time

LAYERS = 16
RATE = 0.002


def bias_relu(x, bias):
    return jnp.maximum(x + bias, 0)


def bias_relu_host(x, bias):
    return np.maximum(x + bias, 0)


def step(local, mesh, counts=None):
    """The mean over the examples of |h16 - y|^2, h0 = X; the gradient of all layers, one reduction, one step down."""
    axes = tuple(mesh.axis_names)

    @jax.custom_vjp
    def activation(x, bias):
        return checkpoint_name(local(x, bias), "activation")

    def forward(x, bias):
        out = checkpoint_name(local(x, bias), "activation")
        return out, out

    def backward(out, slope):
        slope = jnp.where(out > 0, slope, 0)
        return slope, jnp.sum(slope, axis=0)

    activation.defvjp(forward, backward)

    def layer(h, weights):
        U, b, V = weights
        wide = activation(jnp.dot(h, U, precision="highest"), b)
        return h + jnp.dot(wide, V, precision="highest"), None

    def on_device(X, U, b, V, y):
        inside = None
        if counts is not None:
            with jax.named_scope("region.padding-and-cropping"):
                inside = jnp.arange(X.shape[0]) < jnp.asarray(counts)[jax.lax.axis_index(axes)]
                X = jnp.where(inside[:, None], X, 0)

        def squares(U, b, V):
            h, _ = jax.lax.scan(layer, X, (U, b, V))
            distance = h - y
            if inside is not None:
                distance = jnp.where(inside[:, None], distance, 0)
            return jnp.sum(jnp.square(distance))

        with jax.named_scope("region.local-arithmetic"):
            sums = jax.value_and_grad(squares, argnums=(0, 1, 2))(U, b, V)
        with jax.named_scope("region.communication"):
            loss, gradients = jax.lax.psum(sums, axes)
        examples = sum(counts) if counts is not None else X.shape[0] * mesh.size
        with jax.named_scope("region.update"):
            gradients = [each / examples for each in gradients]
            moved = [each - RATE * slope for each, slope in zip((U, b, V), gradients, strict=True)]
        return (*moved, loss / examples, *gradients)

    specs = (P(axes), P(), P(), P(), P(axes))
    made = jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(),) * 7, check_vma=False)
    return made, specs


def host(X, U, b, V, y):
    """The same by hand: forward through the layers, then back."""
    inputs_of, wides = [], []
    h = X
    for layer in range(LAYERS):
        wide = np.maximum(h @ U[layer] + b[layer], 0)
        inputs_of.append(h)
        wides.append(wide)
        h = h + wide @ V[layer]
    distance = h - y
    slope = 2 / len(X) * distance
    gradients = {"U": np.zeros_like(U), "b": np.zeros_like(b), "V": np.zeros_like(V)}
    for layer in reversed(range(LAYERS)):
        gradients["V"][layer] = wides[layer].T @ slope
        inner = (slope @ V[layer].T) * (wides[layer] > 0)
        gradients["U"][layer] = inputs_of[layer].T @ inner
        gradients["b"][layer] = inner.sum(axis=0)
        slope = slope + inner @ U[layer].T
    state = {"U": U, "b": b, "V": V}
    return np.mean(np.sum(distance**2, axis=1)), gradients, {key: state[key] - RATE * gradients[key] for key in state}


def inputs(rng, dims):
    """X standard normal, y = X + 0.1 e; U normal over the square root of d, V 0.1 normal over that of f, b = 0.1 normal."""
    n, d, f, layers = (dims[name] for name in ("n", "d", "f", "layers"))
    X = rng.standard_normal((n, d))
    y = X + 0.1 * rng.standard_normal((n, d))
    U = rng.standard_normal((layers, d, f)) / np.sqrt(d)
    b = 0.1 * rng.standard_normal((layers, f))
    V = 0.1 * rng.standard_normal((layers, f, d)) / np.sqrt(f)
    return {"X": X, "U": U, "b": b, "V": V, "y": y}


audit(
    name="scan16-activation",
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
        args=[
            "X: f32[n=16384, d=512]",
            "U: f32[layers=16, d, f=2048]",
            "b: f32[layers, f]",
            "V: f32[layers, f, d]",
            "y: f32[n, d]",
        ],
        dims={"n": 4096, "d": 16, "f": 64},
        examples="n",
        state={"U": 0, "b": 1, "V": 2},
        loss=3,
        gradient={"U": 4, "b": 5, "V": 6},
        within=1e-5,  # sixteen layers in float32, forward and back
        region="activation",
    ),
    worth=step_time("scan16.py:step", 0.02),
    part="the activation of each of the sixteen layers",
    prediction="no gain: the compiler fuses bias and ReLU with the product, and a kernel keeps it from doing so",
)
