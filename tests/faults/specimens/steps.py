"""Complete steps of the regression that are wrong, each in one way, and some that are right in another way than ours.

`corpus_steps.py` says which reason must be given for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

RATE = 0.004


@dataclass(frozen=True)
class Device:
    """What a device knows inside `shard_map`: its operands with the padding selected away, its number and its count."""

    X: Any
    w: Any
    y: Any
    inside: Any
    number: Any
    count: Any
    total: int
    axes: tuple[str, ...]


def made(
    local: Callable[..., Any],
    mesh: Any,
    counts: Sequence[int] | None,
    values: Callable[[Callable[..., Any], Device], Any],
    *,
    select: bool = True,
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A step whose devices give `values(local, device)`: (new w, loss, gradient)."""
    axes = tuple(mesh.axis_names)

    def on_device(X: Any, w: Any, y: Any) -> Any:
        rows = X.shape[0]
        number = jax.lax.axis_index(axes)
        count = jnp.asarray(counts if counts is not None else [rows] * mesh.size)[number]
        inside = jnp.arange(rows) < count
        if select:
            X, y = jnp.where(inside[:, None], X, 0), jnp.where(inside, y, 0)
        total = sum(counts) if counts is not None else rows * mesh.size
        return values(local, Device(X, w, y, inside, number, count, total, axes))

    specs = (P(axes), P(), P(axes))
    step = jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(), P(), P()), check_vma=False)
    return step, specs


def stepped(device: Device, loss: Any, gradient: Any) -> Any:
    return device.w - RATE * gradient, loss, gradient


# ---------------------------------------------------------------- wrong


def mean_of_means(local, mesh, counts=None):
    def values(local, device):
        squares, gradient = local(device.X, device.w, device.y)
        own = jnp.maximum(device.count, 1)
        return stepped(device, *jax.lax.pmean((squares / own, gradient / own), device.axes))

    return made(local, mesh, counts, values)


def dropped_count(local, mesh, counts=None):
    def values(local, device):
        squares, gradient = jax.lax.psum(local(device.X, device.w, device.y), device.axes)
        return stepped(device, squares / device.count, gradient / device.count)

    return made(local, mesh, counts, values)


def sum_for_mean(local, mesh, counts=None):
    def values(local, device):
        return stepped(device, *jax.lax.psum(local(device.X, device.w, device.y), device.axes))

    return made(local, mesh, counts, values)


def wrong_axis(local, mesh, counts=None):
    def values(local, device):
        squares, gradient = jax.lax.psum(local(device.X, device.w, device.y), device.axes[0])
        return stepped(device, squares / device.total, gradient / device.total)

    return made(local, mesh, counts, values)


def replicated_rows(local, mesh, counts=None):
    """Says that X is split, and has all of it brought to every device."""
    axes = tuple(mesh.axis_names)

    def on_device(X, w, y):
        rows = y.shape[0]
        number = jax.lax.axis_index(axes)
        mine = jax.lax.dynamic_slice_in_dim(X, number * rows, rows)
        inside = jnp.arange(rows) < jnp.asarray(counts if counts is not None else [rows] * mesh.size)[number]
        total = sum(counts) if counts is not None else rows * mesh.size
        sums = local(jnp.where(inside[:, None], mine, 0), w, jnp.where(inside, y, 0))
        squares, gradient = jax.lax.psum(sums, axes)
        return w - RATE * gradient / total, squares / total, gradient / total

    step = jax.shard_map(on_device, mesh=mesh, in_specs=(P(), P(), P(axes)), out_specs=(P(), P(), P()), check_vma=False)
    return step, (P(axes), P(), P(axes))


def missing_psum(local, mesh, counts=None):
    def values(local, device):
        squares, gradient = local(device.X, device.w, device.y)
        return stepped(device, squares / device.total, gradient / device.total)

    return made(local, mesh, counts, values)


def double_psum(local, mesh, counts=None):
    def values(local, device):
        sums = jax.lax.psum(local(device.X, device.w, device.y), device.axes)
        squares, gradient = jax.lax.psum(sums, device.axes)
        return stepped(device, squares / device.total, gradient / device.total)

    return made(local, mesh, counts, values)


def padding_counted(local, mesh, counts=None):
    def values(local, device):
        squares, gradient = jax.lax.psum(local(device.X, device.w, device.y), device.axes)
        rows = len(device.inside) * mesh.size
        return stepped(device, squares / rows, gradient / rows)

    return made(local, mesh, counts, values)


def stale_weights(local, mesh, counts=None):
    """The gradient is always that at the first weights."""

    def values(local, device):
        squares, gradient = jax.lax.psum(local(device.X, jnp.zeros_like(device.w), device.y), device.axes)
        return stepped(device, squares / device.total, gradient / device.total)

    return made(local, mesh, counts, values)


def reordered_on_one_shard(local, mesh, counts=None):
    def values(local, device):
        places = jnp.arange(len(device.inside))
        turned = jnp.where(device.inside, device.count - 1 - places, places)
        X = jnp.where(device.number == 1, device.X[turned], device.X)
        squares, gradient = jax.lax.psum(local(X, device.w, device.y), device.axes)
        return stepped(device, squares / device.total, gradient / device.total)

    return made(local, mesh, counts, values)


def loss_from_one_shard(local, mesh, counts=None):
    def values(local, device):
        squares, gradient = local(device.X, device.w, device.y)
        first = jnp.where(device.number == 0, squares / jnp.maximum(device.count, 1), 0)
        loss, gradient = jax.lax.psum((first, gradient), device.axes)
        return stepped(device, loss, gradient / device.total)

    return made(local, mesh, counts, values)


def donated_rows(local, mesh, counts=None):
    step, specs = right_step(local, mesh, counts)
    return jax.jit(step, donate_argnums=(0,)), specs


def wrong_sign_somewhere(local, mesh, counts=None):
    def values(local, device):
        squares, gradient = jax.lax.psum(local(device.X, device.w, device.y), device.axes)
        gradient = gradient / device.total
        signs = jnp.where(jnp.arange(len(gradient)) < 2, -1, 1)
        return device.w - RATE * signs * gradient, squares / device.total, gradient

    return made(local, mesh, counts, values)


def multiplied_mask(local, mesh, counts=None):
    def values(local, device):
        X, y = device.X * device.inside[:, None].astype(device.X.dtype), device.y * device.inside
        squares, gradient = jax.lax.psum(local(X, device.w, y), device.axes)
        return stepped(device, squares / device.total, gradient / device.total)

    return made(local, mesh, counts, values, select=False)


def local_batch(local, mesh, counts=None):
    """Each device follows its own examples; the loss is that of all."""

    def values(local, device):
        squares, gradient = local(device.X, device.w, device.y)
        loss = jax.lax.psum(squares, device.axes) / device.total
        return stepped(device, loss, gradient / jnp.maximum(device.count, 1))

    return made(local, mesh, counts, values)


# ---------------------------------------------------------------- right


def right_step(local, mesh, counts=None):
    def values(local, device):
        squares, gradient = jax.lax.psum(local(device.X, device.w, device.y), device.axes)
        return stepped(device, squares / device.total, gradient / device.total)

    return made(local, mesh, counts, values)


def permuted_examples(local, mesh, counts=None):
    """Every device takes its examples from the last to the first, all operands alike."""

    def values(local, device):
        squares, gradient = jax.lax.psum(local(device.X[::-1], device.w, device.y[::-1]), device.axes)
        return stepped(device, squares / device.total, gradient / device.total)

    return made(local, mesh, counts, values)


def other_partition(local, mesh, counts=None):
    """Blocks of rows go over the axes of the mesh in the opposite order."""
    axes = tuple(reversed(mesh.axis_names))

    def on_device(X, w, y):
        rows = y.shape[0]
        inside = (
            jnp.arange(rows)
            < jnp.asarray(counts if counts is not None else [rows] * mesh.size)[jax.lax.axis_index(axes)]
        )
        sums = local(jnp.where(inside[:, None], X, 0), w, jnp.where(inside, y, 0))
        squares, gradient = jax.lax.psum(sums, axes)
        total = sum(counts) if counts is not None else rows * mesh.size
        return w - RATE * gradient / total, squares / total, gradient / total

    specs = (P(axes), P(), P(axes))
    return jax.shard_map(on_device, mesh=mesh, in_specs=specs, out_specs=(P(), P(), P()), check_vma=False), specs


def counted_weights(local, mesh, counts=None):
    """The count-weighted repair: each device's mean, weighted with its count, and counts added up on the devices."""

    def values(local, device):
        squares, gradient = local(device.X, device.w, device.y)
        own = jnp.maximum(device.count, 1)
        weighted = (device.count * (squares / own), device.count * (gradient / own), device.count)
        squares, gradient, total = jax.lax.psum(weighted, device.axes)
        return stepped(device, squares / total, gradient / total)

    return made(local, mesh, counts, values)


def gathered_sums(local, mesh, counts=None):
    """Loss and count of every device are brought together on all of them, the gradient is scattered and brought together."""

    def values(local, device):
        squares, gradient = local(device.X, device.w, device.y)
        losses = jax.lax.all_gather(squares, device.axes)
        total = jnp.sum(jax.lax.all_gather(device.count, device.axes))
        first = device.axes[0]
        length = len(gradient)
        padded = jnp.pad(gradient, (0, -length % mesh.shape[first]))
        part = jax.lax.psum_scatter(padded, first, tiled=True)
        for axis in device.axes[1:]:
            part = jax.lax.psum(part, axis)
        gradient = jax.lax.all_gather(part, first, tiled=True)[:length]
        return stepped(device, jnp.sum(losses) / total, gradient / total)

    return made(local, mesh, counts, values)


def gathered_gradients(local, mesh, counts=None):
    """The gradients of all devices, stacked on each of them, and added up there."""

    def values(local, device):
        squares, gradient = local(device.X, device.w, device.y)
        gradient = jnp.sum(jax.lax.all_gather(gradient, device.axes), axis=0)
        return stepped(device, jax.lax.psum(squares, device.axes) / device.total, gradient / device.total)

    return made(local, mesh, counts, values)
