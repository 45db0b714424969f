"""What the built-in kernels refuse, and that each refusal names the value at fault."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernel_audit.kernels.blocked_axpy import blocked_axpy
from kernel_audit.kernels.pipelined_axpy import pipelined_axpy

FULL = jax.ShapeDtypeStruct((8, 128), jnp.float32)


def of(shape=(8, 128), dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


@pytest.fixture(params=[blocked_axpy, pipelined_axpy], ids=["blocked", "pipelined"])
def kernel(request):
    return request.param


@pytest.fixture(autouse=True)
def no_launch(monkeypatch):
    """A refusal comes before any kernel is made."""
    from jax.experimental import pallas as pl

    def launched(*_, **__):
        raise AssertionError("a kernel was made before the refusal")

    monkeypatch.setattr(pl, "pallas_call", launched)


@pytest.mark.parametrize(
    ("x", "y", "named"),
    [
        (of(), of(dtype=jnp.bfloat16), "bfloat16"),
        (of(dtype=jnp.int32), of(dtype=jnp.int32), "int32"),
        (of(dtype=jnp.float16), of(dtype=jnp.float16), "float16"),
        (np.ones((8, 128)), np.ones((8, 128)), "float64"),
        (of(), of((1, 128)), r"\(1, 128\)"),
        (of((8, 1)), of(), r"\(8, 1\)"),
        (of((128,)), of((128,)), r"\(128,\)"),
        (of((2, 8, 128)), of((2, 8, 128)), r"\(2, 8, 128\)"),
        (of((0, 128)), of((0, 128)), r"\(0, 128\)"),
        (of((8, 0)), of((8, 0)), r"\(8, 0\)"),
        (of(), 2.0, "2.0"),
        ([[1.0]], of((1, 1)), r"\[\[1.0\]\]"),
    ],
)
def test_operands_are_refused_by_name(kernel, x, y, named):
    with pytest.raises(ValueError, match=named):
        kernel(x, y)


@pytest.mark.parametrize(
    "block", [(8,), (8, 128, 1), (0, 128), (8, -128), (8.0, 128), (True, 128), 8, None, "ab"], ids=repr
)
def test_blocks_are_refused_by_name(kernel, block):
    with pytest.raises(ValueError) as refusal:
        kernel(FULL, FULL, block=block)
    assert repr(block) in str(refusal.value)


@pytest.mark.parametrize("block", [(4, 128), (8, 64), (12, 128), (8, 200)])
def test_pipeline_blocks_are_whole_tiles(block):
    with pytest.raises(ValueError) as refusal:
        pipelined_axpy(FULL, FULL, block=block)
    assert repr(block) in str(refusal.value) and "(8, 128)" in str(refusal.value)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("buffers", 1),
        ("buffers", 4),
        ("buffers", 2.0),
        ("buffers", True),
        ("buffers", "2"),
        ("mode", "gpu"),
        ("mode", "interpret"),
        ("mode", None),
        ("no_pipelining", 1),
        ("no_pipelining", "yes"),
        ("no_pipelining", None),
    ],
)
def test_pipeline_options_are_refused_by_name(option, value):
    with pytest.raises(ValueError) as refusal:
        pipelined_axpy(FULL, FULL, **{option: value})
    assert option in str(refusal.value) and repr(value) in str(refusal.value)


def test_target_mode_needs_a_tpu_backend():
    with pytest.raises(RuntimeError, match=r"found 'cpu'"):
        pipelined_axpy(jnp.ones((8, 128)), jnp.ones((8, 128)), mode="tpu")


def test_target_mode_needs_operands_on_the_tpu(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    on_cpu = jnp.ones((8, 128))
    with pytest.raises(RuntimeError, match="found them on cpu"):
        pipelined_axpy(on_cpu, on_cpu, mode="tpu")
    with pytest.raises(RuntimeError, match="ndarray"):
        pipelined_axpy(np.ones((8, 128), np.float32), np.ones((8, 128), np.float32), mode="tpu")


def test_bad_operands_are_refused_before_the_missing_tpu():
    with pytest.raises(ValueError, match="int32"):
        pipelined_axpy(of(dtype=jnp.int32), of(dtype=jnp.int32), mode="tpu")
