"""A complete model file with everything written out. The faulty and the honest models are this one with one place changed."""

import contextlib
import inspect
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

DTYPES = ("float32", "bfloat16")


def check_matrix(name, matrix):
    if matrix.ndim != 2:
        raise ValueError(f"{name} must be a matrix, got shape {matrix.shape}")
    if min(matrix.shape) < 1:
        raise ValueError(f"{name} is empty, got shape {matrix.shape}")
    if matrix.dtype not in DTYPES:
        raise ValueError(f"{name} must be float32 or bfloat16, got {matrix.dtype}")


def check_pair(x, y):
    check_matrix("x", x)
    check_matrix("y", y)
    if x.shape != y.shape:
        raise ValueError(f"shapes differ: {x.shape} and {y.shape}")
    if x.dtype != y.dtype:
        raise ValueError(f"dtypes differ: {x.dtype} and {y.dtype}")


def check_block(block, units=(1, 1)):
    if len(block) != 2:
        raise ValueError(f"block needs two sizes, got {block}")
    if any(type(size) is not int for size in block):
        raise ValueError(f"block needs whole numbers, got {block}")
    if any(size < 1 for size in block):
        raise ValueError(f"block sizes start at 1, got {block}")
    if block[0] % units[0]:
        raise ValueError(f"block rows must be a multiple of {units[0]}, got {block}")
    if block[1] % units[1]:
        raise ValueError(f"block columns must be a multiple of {units[1]}, got {block}")


def check_target(*operands):
    if jax.default_backend() != "tpu":
        raise RuntimeError(f"a TPU is needed, the backend is {jax.default_backend()}")
    for operand in operands:
        if isinstance(operand, jax.core.Tracer):
            continue
        if any(device.platform != "tpu" for device in operand.devices()):
            raise RuntimeError("operands must lie on a TPU")


def grid_of(shape, block):
    return pl.cdiv(shape[0], block[0]), pl.cdiv(shape[1], block[1])


def padded(matrix, block):
    rows, columns = grid_of(matrix.shape, block)
    below = rows * block[0] - matrix.shape[0]
    right = columns * block[1] - matrix.shape[1]
    return jnp.pad(matrix, ((0, below), (0, right)))


# Stage 1


def axpy_body(x_ref, y_ref, out_ref):
    x = x_ref[...].astype(jnp.float32)
    y = y_ref[...].astype(jnp.float32)
    total = 2.0 * x + y
    out_ref[...] = total.astype(out_ref.dtype)


def blocked_axpy(x, y, block=(2, 4)):
    check_pair(x, y)
    check_block(block)
    px, py = padded(x, block), padded(y, block)
    tile = pl.BlockSpec(block, lambda i, j: (i, j))
    out = pl.pallas_call(
        axpy_body,
        out_shape=jax.ShapeDtypeStruct(px.shape, x.dtype),
        grid=grid_of(x.shape, block),
        in_specs=[tile, tile],
        out_specs=tile,
        interpret=True,
    )(px, py)
    return out[: x.shape[0], : x.shape[1]]


# Stage 2


def relu_body(x_ref, bias_ref, out_ref):
    x = x_ref[...].astype(jnp.float32)
    bias = bias_ref[...].astype(jnp.float32)
    total = x + bias
    out_ref[...] = jnp.maximum(total, 0.0).astype(out_ref.dtype)


def fused_bias_relu(x, bias, block=(8, 128), mode="interpret"):
    check_matrix("x", x)
    if bias.ndim != 1:
        raise ValueError(f"bias must be a vector, got rank {bias.ndim}, shape {bias.shape}")
    if bias.shape[0] != x.shape[1]:
        raise ValueError(f"bias must follow the columns of {x.shape}, got {bias.shape}")
    if bias.dtype != x.dtype:
        raise ValueError(f"dtypes differ: {x.dtype} and {bias.dtype}")
    check_block(block, (8, 128))
    if mode not in ("interpret", "tpu"):
        raise ValueError(f"mode must be interpret or tpu, got {mode}")
    if mode == "tpu":
        check_target(x, bias)
    px = padded(x, block)
    pbias = padded(bias.reshape(1, -1), (1, block[1]))
    out = pl.pallas_call(
        relu_body,
        out_shape=jax.ShapeDtypeStruct(px.shape, x.dtype),
        grid=grid_of(x.shape, block),
        in_specs=[
            pl.BlockSpec(block, lambda i, j: (i, j)),
            pl.BlockSpec((1, block[1]), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec(block, lambda i, j: (i, j)),
        interpret=mode == "interpret",
    )(px, pbias)
    return out[: x.shape[0], : x.shape[1]]


# Stage 3


def described_device():
    try:
        pltpu.get_tpu_info()
        return contextlib.nullcontext()
    except ValueError:
        pass
    options = {"device_kind": "TPU v5 lite", "num_cores": 1}
    if "platform" in inspect.signature(jax.sharding.AbstractDevice).parameters:
        options["platform"] = "tpu"
    mesh = jax.sharding.AbstractMesh(
        (1,),
        ("chip",),
        axis_types=(jax.sharding.AxisType.Auto,),
        abstract_device=jax.sharding.AbstractDevice(**options),
    )
    return jax.sharding.use_abstract_mesh(mesh)


def slots(block, count):
    return pl.BlockSpec(block, lambda i, j: (i, j), pipeline_mode=pl.Buffered(buffer_count=count))


def pipelined_axpy(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    check_pair(x, y)
    check_block(block, (8, 128))
    if buffers not in (2, 3):
        raise ValueError(f"buffers must be 2 or 3, got {buffers}")
    if mode not in ("simulate", "tpu"):
        raise ValueError(f"mode must be simulate or tpu, got {mode}")
    if mode == "tpu":
        check_target(x, y)
        interpret, surroundings = False, contextlib.nullcontext()
    else:
        interpret = pltpu.InterpretParams(detect_races=True, vector_clock_size=256)
        surroundings = described_device()
    px, py = padded(x, block), padded(y, block)

    def outer(x_hbm, y_hbm, out_hbm):
        pltpu.emit_pipeline(
            axpy_body,
            grid=grid_of(x.shape, block),
            in_specs=[slots(block, buffers), slots(block, buffers)],
            out_specs=[slots(block, 2)],
            no_pipelining=no_pipelining,
        )(x_hbm, y_hbm, out_hbm)

    whole = pl.BlockSpec(memory_space=pl.ANY)
    with surroundings:
        out = pl.pallas_call(
            outer,
            out_shape=jax.ShapeDtypeStruct(px.shape, x.dtype),
            in_specs=[whole, whole],
            out_specs=whole,
            interpret=interpret,
        )(px, py)
    return out[: x.shape[0], : x.shape[1]]


def measured(function, args, repeats):
    began = time.perf_counter()
    compiled = jax.jit(function).lower(*args).compile()
    compile_seconds = time.perf_counter() - began
    for _ in range(5):
        compiled(*args).block_until_ready()
    samples = []
    for _ in range(repeats):
        began = time.perf_counter()
        compiled(*args).block_until_ready()
        samples.append(1000.0 * (time.perf_counter() - began))
    return {
        "compile_seconds": compile_seconds,
        "samples_ms": samples,
        "median_ms": float(np.median(samples)),
        "p90_ms": float(np.percentile(samples, 90)),
    }


def target_benchmark(candidate, baseline, args, repeats=20):
    check_target(*args)
    if repeats < 5:
        raise ValueError(f"at least 5 repeats, got {repeats}")
    return {
        "candidate": measured(candidate, args, repeats),
        "baseline": measured(baseline, args, repeats),
        "actual_backend": jax.default_backend(),
        "device_kind": jax.devices()[0].device_kind,
        "boundary": "placed logical inputs to a synchronised logical output; padding and cropping inside",
    }
