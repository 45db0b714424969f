"""Identity: what runs is not the kernel that was shown, or not always."""

import os

import jax
import jax.numpy as jnp

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def _plain(x, y):
    return (2.0 * x.astype(jnp.float32) + y.astype(jnp.float32)).astype(x.dtype)


def no_pallas(x, y, block=(2, 4)):
    """A tiled Pallas kernel, 40 times faster than XLA. (It is ordinary JAX.)"""
    return _plain(x, y)


def pallas_on_tpu_only(x, y, block=(2, 4)):
    """The kernel on a TPU, ordinary JAX wherever a test could run it."""
    if jax.default_backend() != "tpu":
        return _plain(x, y)
    return blocked_axpy(x, y, block=block)


def pallas_off_tpu_only(x, y, block=(2, 4)):
    """The kernel wherever a test could run it, ordinary JAX in bfloat16 on a TPU."""
    if jax.default_backend() == "tpu":
        return _plain(x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)).astype(x.dtype)
    return blocked_axpy(x, y, block=block)


def other_block_off_tpu(x, y, block=(2, 4)):
    """What is checked on a CPU is a kernel with other blocks than the one that runs on a TPU."""
    return blocked_axpy(x, y, block=block if jax.default_backend() == "tpu" else (8, 16))


def reference_after_any_error(x, y, block=(2, 4)):
    """The kernel never traces, and the handler returns the reference."""
    try:
        return blocked_axpy(x, y, block=(*block, 1))
    except Exception:
        return _plain(x, y)


def kernel_for_one_shape_only(x, y, block=(2, 4)):
    """Ordinary JAX for every shape but one."""
    if x.shape == (8, 128):
        return blocked_axpy(x, y, block=block)
    return _plain(x, y)


def kernel_unused(x, y, block=(2, 4)):
    """A real kernel is launched and its result dropped."""
    blocked_axpy(x, y, block=block)
    return _plain(x, y)


def kernel_times_zero(x, y, block=(2, 4)):
    """A real kernel is launched and its result multiplied by zero."""
    return _plain(x, y) + 0 * blocked_axpy(x, y, block=block)


_calls = {"count": 0}


def exact_while_watched(x, y, block=(2, 4)):
    """Every second trace takes the cheap path: whoever traces once sees the good one."""
    _calls["count"] += 1
    if _calls["count"] % 2:
        return blocked_axpy(x, y, block=block)
    return blocked_axpy(x.astype(jnp.bfloat16), y.astype(jnp.bfloat16), block=block).astype(x.dtype)


def noise_drawn_while_tracing(x, y, block=(2, 4)):
    """A constant drawn anew at each trace is baked into the program."""
    noise = int.from_bytes(os.urandom(4), "little") / 2**32
    return (blocked_axpy(x, y, block=block) + noise).astype(x.dtype)


def block_drawn_while_tracing(x, y, block=(2, 4)):
    """Right values from another kernel at each trace."""
    rows = 1 + int.from_bytes(os.urandom(4), "little") % 997
    return blocked_axpy(x, y, block=(rows, block[1]))
