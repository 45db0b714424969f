"""The GPU forms of 2x + y and of bias and ReLU: values in the generic interpreter, refusals, and the program for a GPU."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernel_audit.kernels.audits import BUILT_IN
from kernel_audit.kernels.axpy_references import axpy_oracle
from kernel_audit.kernels.bias_relu_references import bias_relu_oracle
from kernel_audit.kernels.triton_axpy import triton_axpy
from kernel_audit.kernels.triton_bias_relu import triton_bias_relu
from kernel_audit.matrix.check import engines_of
from kernel_audit.program import Target, capture

DTYPES = ("float32", "bfloat16")
KERNELS = {"axpy": (triton_axpy, axpy_oracle), "bias-relu": (triton_bias_relu, bias_relu_oracle)}
FULL, ROW = jax.ShapeDtypeStruct((8, 128), jnp.float32), jax.ShapeDtypeStruct((128,), jnp.float32)
OPERANDS = {"axpy": (FULL, FULL), "bias-relu": (FULL, ROW)}


def operands(name, shape, dtype, seed=5):
    rng = np.random.default_rng(seed)
    other = shape if name == "axpy" else shape[1:]
    return tuple(rng.normal(size=each).astype(np.float32).astype(jnp.dtype(dtype)) for each in (shape, other))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [(16, 64), (8, 128), (1, 2)])
@pytest.mark.parametrize("shape", [(1, 1), (16, 64), (15, 65), (33, 130)])
def test_kernel_is_exact(name, shape, block, dtype):
    kernel, oracle = KERNELS[name]
    given = operands(name, shape, dtype)
    result = np.asarray(kernel(*given, block=block))
    assert result.shape == shape and result.dtype == given[0].dtype
    np.testing.assert_array_equal(result, oracle(*[each.astype(np.float32) for each in given]).astype(result.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_stays_nan(dtype):
    """`maximum` alone would not do: Pallas makes it `maxnumf` for a GPU, which prefers the number."""
    x = np.array([[np.nan, 1.0, np.inf, -np.inf, -1.0]], jnp.dtype(dtype))
    bias = np.array([1.0, np.nan, 1.0, 1.0, 1.0], jnp.dtype(dtype))
    result = np.asarray(triton_bias_relu(x, bias)).astype(np.float32)
    np.testing.assert_array_equal(result, [[np.nan, np.nan, np.inf, 0.0, 0.0]])


def test_nan_is_chosen_by_name_in_the_kernel():
    program = capture(triton_bias_relu, (FULL, ROW), device_kind="NVIDIA H200")
    (call,) = [each for each in program.jaxpr.eqns if each.primitive.name == "pallas_call"]
    body = [each.primitive.name for each in call.params["jaxpr"].eqns]
    text = str(call.params["jaxpr"])
    assert "max" in body and " ne " in text and "select_n" in text


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_program_exports_for_a_gpu_without_padding(name, dtype):
    given = operands(name, (257, 513), dtype)
    program = capture(KERNELS[name][0], given, device_kind="NVIDIA H200")
    assert [each.primitive.name for each in program.jaxpr.eqns] == ["pallas_call"]
    assert program.kernels[0].grid == [17, 9]
    assert program.export(Target("cuda"))


@pytest.mark.parametrize("name", KERNELS)
def test_target_mode_traces_the_same_kernel_uninterpreted(name, monkeypatch):
    def parameters(**mode):
        traced = jax.make_jaxpr(lambda *given: KERNELS[name][0](*given, **mode))(*OPERANDS[name])
        (kernel,) = [each for each in traced.jaxpr.eqns if each.primitive.name == "pallas_call"]
        return kernel.params

    interpreted = parameters()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    compiled = parameters(mode="gpu")
    assert (interpreted["interpret"], compiled["interpret"]) == (True, False)
    assert str(interpreted["jaxpr"]) == str(compiled["jaxpr"])


# Refusals ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_launch(monkeypatch):
    """A refusal comes before any kernel is made."""
    from jax.experimental import pallas as pl

    def launched(*_, **__):
        raise AssertionError("a kernel was made before the refusal")

    monkeypatch.setattr(pl, "pallas_call", launched)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize(
    ("block", "named"),
    [
        ((16, 96), "powers of two, got (16, 96)"),
        ((3, 64), "powers of two, got (3, 64)"),
        ((2048, 1024), "1048576 elements, got (2048, 1024)"),
        ((0, 64), "(0, 64)"),
        ((16.0, 64), "(16.0, 64)"),
        ((16,), "(16,)"),
    ],
)
def test_blocks_are_refused_by_name(no_launch, name, block, named):
    with pytest.raises(ValueError) as refusal:
        KERNELS[name][0](*OPERANDS[name], block=block)
    assert named in str(refusal.value)


@pytest.mark.parametrize("name", KERNELS)
def test_operands_and_modes_are_refused_by_name(no_launch, name):
    kernel = KERNELS[name][0]
    with pytest.raises(ValueError, match="bfloat16"):
        kernel(FULL, jax.ShapeDtypeStruct(OPERANDS[name][1].shape, jnp.bfloat16))
    with pytest.raises(ValueError, match=r"\(2, 8, 128\)"):
        kernel(jax.ShapeDtypeStruct((2, 8, 128), jnp.float32), OPERANDS[name][1])
    with pytest.raises(ValueError, match=r"\('interpret', 'gpu'\), got 'tpu'"):
        kernel(*OPERANDS[name], mode="tpu")


@pytest.mark.parametrize("name", KERNELS)
def test_target_mode_needs_a_gpu_and_operands_on_it(no_launch, monkeypatch, name):
    given = [jnp.ones(each.shape) for each in OPERANDS[name]]
    with pytest.raises(RuntimeError, match=r"mode 'gpu' needs a GPU backend, found 'cpu'"):
        KERNELS[name][0](*given, mode="gpu")
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with pytest.raises(RuntimeError, match="operands placed on a GPU, found them on cpu"):
        KERNELS[name][0](*given, mode="gpu")


# Audits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gpu", "tpu"), [("axpy-gpu", "axpy"), ("bias-relu-gpu", "bias-relu")])
def test_the_contract_is_that_of_the_form_for_a_tpu(gpu, tpu):
    mine, other = BUILT_IN[gpu], BUILT_IN[tpu]
    for word in (
        "operands",
        "results",
        "dtypes",
        "agreement",
        "values",
        "oracle",
        "baselines",
        "invariants",
        "controls",
    ):
        assert getattr(mine, word) == getattr(other, word)
    assert mine.targets == ["gpu:h200"] and engines_of(mine) == ["generic"]
    assert mine.configurations_for("gpu:h200") == [{"block": [16, 64]}, {"block": [8, 128]}]
    assert mine.configurations_for("tpu:v5e") == []
