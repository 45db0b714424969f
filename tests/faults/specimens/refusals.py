"""Refusals: what the contract rejects is repaired, accepted, rejected in other words, or valid input is."""

import jax
import jax.numpy as jnp

from kernel_audit.kernels.blocked_axpy import blocked_axpy
from kernel_audit.kernels.pipelined_axpy import pipelined_axpy


def broadcast_accepted(x, y, block=(2, 4)):
    """A row is stretched to a matrix that nobody declared."""
    return blocked_axpy(*jnp.broadcast_arrays(x, y), block=block)


def dtypes_promoted(x, y, block=(2, 4)):
    """Operands of two dtypes are promoted to the wider one."""
    wide = jnp.promote_types(x.dtype, y.dtype)
    return blocked_axpy(x.astype(wide), y.astype(wide), block=block)


def integers_accepted(x, y, block=(2, 4)):
    """Integers are computed in float32 and cast back."""
    if jnp.issubdtype(x.dtype, jnp.integer) and x.dtype == y.dtype:
        return blocked_axpy(x.astype(jnp.float32), y.astype(jnp.float32), block=block).astype(x.dtype)
    return blocked_axpy(x, y, block=block)


def float16_accepted(x, y, block=(2, 4)):
    """float16 is computed in float32 and cast back."""
    if x.dtype == y.dtype == jnp.float16:
        return blocked_axpy(x.astype(jnp.float32), y.astype(jnp.float32), block=block).astype(x.dtype)
    return blocked_axpy(x, y, block=block)


def empty_accepted(x, y, block=(2, 4)):
    """Nothing in, nothing out."""
    if x.size == 0 and x.shape == y.shape:
        return x
    return blocked_axpy(x, y, block=block)


def vectors_accepted(x, y, block=(2, 4)):
    """A vector is taken for a matrix of one row."""
    if x.ndim == 1 and x.shape == y.shape:
        return blocked_axpy(x[None], y[None], block=block)[0]
    return blocked_axpy(x, y, block=block)


def batches_accepted(x, y, block=(2, 4)):
    """A batch of matrices is stacked into one."""
    if x.ndim == 3 and x.shape == y.shape:
        rows = x.shape[0] * x.shape[1], x.shape[2]
        return blocked_axpy(x.reshape(rows), y.reshape(rows), block=block).reshape(x.shape)
    return blocked_axpy(x, y, block=block)


def block_repaired(x, y, block=(2, 4)):
    """Block sizes below one become one."""
    return blocked_axpy(x, y, block=tuple(max(1, int(size)) for size in block))


def refusal_of_another_type(x, y, block=(2, 4)):
    """Refuses everything that it should, as TypeError."""
    try:
        return blocked_axpy(x, y, block=block)
    except ValueError as refusal:
        raise TypeError(str(refusal)) from None


def refusal_by_assertion(x, y, block=(2, 4)):
    """Asserts instead of refusing; `python -O` refuses nothing."""
    assert x.shape == y.shape, f"{x.shape} and {y.shape}"
    assert x.dtype == y.dtype, f"{x.dtype} and {y.dtype}"
    return blocked_axpy(x, y, block=block)


def refusal_without_the_value(x, y, block=(2, 4)):
    """Refuses what it should and does not say what was wrong with it."""
    try:
        return blocked_axpy(x, y, block=block)
    except ValueError:
        raise ValueError("invalid arguments") from None


def bfloat16_refused(x, y, block=(2, 4)):
    """Refuses a dtype that the contract declares."""
    if x.dtype == jnp.bfloat16:
        raise ValueError(f"dtype {x.dtype} is not supported yet")
    return blocked_axpy(x, y, block=block)


def singletons_refused(x, y, block=(2, 4)):
    """Refuses a single row or column, which is a matrix like any other."""
    if min(x.shape) == 1:
        raise ValueError(f"a matrix needs two rows and columns, got {x.shape}")
    return blocked_axpy(x, y, block=block)


def pipeline_block_rounded_up(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Blocks are rounded up to whole tiles."""
    rounded = -(-max(1, block[0]) // 8) * 8, -(-max(1, block[1]) // 128) * 128
    return pipelined_axpy(x, y, rounded, buffers, no_pipelining, mode)


def pipeline_buffers_clamped(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Any number of slots becomes two or three."""
    return pipelined_axpy(x, y, block, min(max(buffers, 2), 3), no_pipelining, mode)


def pipeline_unknown_mode_simulated(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Every mode but "tpu" is a simulation."""
    return pipelined_axpy(x, y, block, buffers, no_pipelining, "tpu" if mode == "tpu" else "simulate")


def pipeline_dtypes_promoted(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """y takes the dtype of x, whatever it had."""
    return pipelined_axpy(x, y.astype(x.dtype), block, buffers, no_pipelining, mode)


def pipeline_broadcast_accepted(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """A row is stretched to a matrix that nobody declared."""
    return pipelined_axpy(*jnp.broadcast_arrays(x, y), block, buffers, no_pipelining, mode)


def pipeline_refusal_of_another_type(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Refuses everything that it should, as NotImplementedError."""
    try:
        return pipelined_axpy(x, y, block, buffers, no_pipelining, mode)
    except ValueError as refusal:
        raise NotImplementedError(str(refusal)) from None


def target_mode_falls_back_to_simulation(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Without a TPU, mode "tpu" simulates one and says nothing."""
    if mode == "tpu" and jax.default_backend() != "tpu":
        mode = "simulate"
    return pipelined_axpy(x, y, block, buffers, no_pipelining, mode)


def target_mode_falls_back_to_jax(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Without a TPU, mode "tpu" computes with ordinary JAX and says nothing."""
    try:
        return pipelined_axpy(x, y, block, buffers, no_pipelining, mode)
    except RuntimeError:
        return (2.0 * x.astype(jnp.float32) + y.astype(jnp.float32)).astype(x.dtype)


def target_mode_asks_traced_operands(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Mode "tpu" looks at the devices of operands that have none while they are traced, and would simulate behind that."""
    if mode == "tpu" and any(device.platform != "tpu" for device in x.devices() | y.devices()):
        raise RuntimeError("mode 'tpu' needs operands on a TPU")
    return pipelined_axpy(x, y, block, buffers, no_pipelining, "simulate" if mode == "tpu" else mode)


def target_mode_never_opens(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Mode "tpu" raises, whatever the backend."""
    if mode == "tpu":
        raise RuntimeError("mode 'tpu' needs a TPU backend")
    return pipelined_axpy(x, y, block, buffers, no_pipelining, mode)


def target_mode_has_no_kernel(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Mode "tpu" asks for a TPU, and computes with ordinary JAX there."""
    if mode == "tpu" and jax.default_backend() == "tpu":
        return (2.0 * x.astype(jnp.float32) + y.astype(jnp.float32)).astype(x.dtype)
    return pipelined_axpy(x, y, block, buffers, no_pipelining, mode)


def target_mode_is_simulation(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    """Mode "tpu" asks for a TPU, and then simulates one there."""
    if mode == "tpu" and jax.default_backend() != "tpu":
        raise RuntimeError(f"mode 'tpu' needs a TPU backend, found {jax.default_backend()!r}")
    return pipelined_axpy(x, y, block, buffers, no_pipelining, "simulate" if mode == "tpu" else mode)
