"""Values and refusals of the bias-and-ReLU kernel and of its baselines, against NumPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from kernel_audit.kernels import bias_relu_references as references
from kernel_audit.kernels.bias_relu_references import bias_relu_oracle
from kernel_audit.kernels.fused_bias_relu import fused_bias_relu
from kernel_audit.program import Target, capture

DTYPES = ("float32", "bfloat16")
CONTROLS = ("bias_along_rows", "bias_relu_rounded_early", "nan_to_zero", "relu_before_bias")
FULL, BIAS = jax.ShapeDtypeStruct((8, 128), jnp.float32), jax.ShapeDtypeStruct((128,), jnp.float32)


def operands(shape, dtype, seed=5):
    rng = np.random.default_rng(seed)
    x, bias = rng.normal(size=shape), rng.normal(size=shape[1:])
    return tuple(each.astype(np.float32).astype(jnp.dtype(dtype)) for each in (x, bias))


def expected(x, bias):
    return bias_relu_oracle(x.astype(np.float32), bias.astype(np.float32)).astype(x.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [(8, 128), (16, 256)])
@pytest.mark.parametrize("shape", [(1, 1), (15, 255), (16, 256), (17, 257), (24, 128), (8, 384)])
def test_kernel_is_exact(shape, block, dtype):
    x, bias = operands(shape, dtype)
    result = fused_bias_relu(x, bias, block=block)
    assert result.shape == shape and result.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(result), expected(x, bias))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_boundary_of_the_relu(dtype):
    """Sums that are exactly zero, the least bit above, the least bit below, and those of zeros of both signs."""
    kind = jnp.dtype(dtype)
    bit = float(ml_dtypes.finfo(kind).eps)
    columns = [(1.0, -1.0), (1.0 + bit, -1.0), (1.0, -1.0 - bit), (-0.0, 0.0), (-0.0, -0.0), (2.0**-120, 0.0)]
    x = np.array([[each for each, _ in columns]], kind)
    bias = np.array([each for _, each in columns], kind)
    result = np.asarray(fused_bias_relu(x, bias)).astype(np.float32)
    np.testing.assert_array_equal(result, [[0.0, bit, 0.0, 0.0, 0.0, 2.0**-120]])


@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_stays_nan_and_infinities_are_added(dtype):
    x = np.array([[np.nan, 1.0, np.inf, -np.inf, np.inf]], jnp.dtype(dtype))
    bias = np.array([1.0, np.nan, 1.0, 1.0, -np.inf], jnp.dtype(dtype))
    for function in (fused_bias_relu, references.maximum_jnp, references.library_relu):
        result = np.asarray(function(jnp.asarray(x), jnp.asarray(bias))).astype(np.float32)
        np.testing.assert_array_equal(result, [[np.nan, np.nan, np.inf, 0.0, np.nan]])
    np.testing.assert_array_equal(expected(x, bias).astype(np.float32), [[np.nan, np.nan, np.inf, 0.0, np.nan]])


def test_arithmetic_is_float32_with_one_cast():
    """In bfloat16 the bias alone would vanish; one rounding at the end keeps it."""
    x, bias = np.array([[1.0]], ml_dtypes.bfloat16), np.array([2.0**-8 + 2.0**-15], ml_dtypes.bfloat16)
    assert np.asarray(fused_bias_relu(x, bias)).item() == 1.0 + 2.0**-7


def test_each_column_has_its_own_bias():
    x, bias = np.zeros((17, 257), np.float32), np.arange(1, 258, dtype=np.float32)
    np.testing.assert_array_equal(np.asarray(fused_bias_relu(x, bias)), np.tile(bias, (17, 1)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [(8, 128), (16, 256)])
def test_the_kernel_lowers_for_a_tpu(block, dtype):
    x, bias = operands((17, 257), dtype)
    program = capture(fused_bias_relu, (x, bias), keywords={"block": block})
    assert program.kernels[0].blocks == [list(block), [1, block[1]], list(block)]
    assert program.export(Target("tpu"))


def test_target_mode_traces_the_same_kernel_uninterpreted(monkeypatch):
    def parameters(**mode):
        traced = jax.make_jaxpr(lambda x, bias: fused_bias_relu(x, bias, **mode))(FULL, BIAS)
        (kernel,) = [each for each in traced.jaxpr.eqns if each.primitive.name == "pallas_call"]
        return kernel.params

    interpreted = parameters()
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    compiled = parameters(mode="tpu")
    assert (interpreted["interpret"], compiled["interpret"]) == (True, False)
    assert str(interpreted["jaxpr"]) == str(compiled["jaxpr"])


@pytest.mark.parametrize("baseline", [references.maximum_jnp, references.library_relu])
@pytest.mark.parametrize("dtype", DTYPES)
def test_baselines_are_exact_eager_and_jitted(baseline, dtype):
    x, bias = operands((9, 129), dtype)
    for function in (baseline, jax.jit(baseline)):
        result = function(jnp.asarray(x), jnp.asarray(bias))
        assert result.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(result), expected(x, bias))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["bias_relu_oracle", *CONTROLS])
def test_oracle_and_controls_stay_in_the_dtype_of_their_operands(name, dtype):
    function = getattr(references, name)
    x, bias = (each.astype(dtype) for each in operands((9, 129), "float32"))
    assert function(x, bias).dtype == dtype


@pytest.mark.parametrize(
    "control", [references.bias_relu_rounded_early, references.bias_along_rows, references.relu_before_bias]
)
def test_controls_differ_from_the_oracle(control):
    x, bias = operands((9, 129), "float32")
    assert not np.array_equal(control(x, bias), bias_relu_oracle(x, bias))


def test_controls_equal_the_oracle_where_they_must():
    x, bias = operands((9, 129), "float32")
    np.testing.assert_array_equal(references.nan_to_zero(x, bias), bias_relu_oracle(x, bias))
    coarse = bias.astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(references.bias_relu_rounded_early(x, coarse), bias_relu_oracle(x, coarse))
    x[0, 0] = np.nan
    assert references.nan_to_zero(x, bias)[0, 0] == 0 and np.isnan(bias_relu_oracle(x, bias)[0, 0])


# Refusals ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_launch(monkeypatch):
    """A refusal comes before any kernel is made."""
    from jax.experimental import pallas as pl

    def launched(*_, **__):
        raise AssertionError("a kernel was made before the refusal")

    monkeypatch.setattr(pl, "pallas_call", launched)


def of(shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


@pytest.mark.parametrize("mode", ["interpret", "tpu"])
@pytest.mark.parametrize(
    ("x", "bias", "named"),
    [
        (FULL, of((128,), jnp.bfloat16), "bfloat16"),
        (of((8, 128), jnp.int32), of((128,), jnp.int32), "int32"),
        (of((8, 128), jnp.float16), of((128,), jnp.float16), "float16"),
        (FULL, of((127,)), "(127,)"),
        (FULL, of((8,)), "(8,)"),
        (FULL, of((1,)), "(1,)"),
        (FULL, of((1, 128)), "(1, 128)"),
        (FULL, of(()), "rank 0"),
        (FULL, 1.0, "1.0"),
        (of((128,)), BIAS, "(128,)"),
        (of((2, 8, 128)), BIAS, "(2, 8, 128)"),
        (of((0, 128)), BIAS, "(0, 128)"),
        (of((8, 0)), of((0,)), "(8, 0)"),
    ],
)
def test_operands_are_refused_by_name_in_both_modes(no_launch, x, bias, named, mode):
    with pytest.raises(ValueError) as refusal:
        fused_bias_relu(x, bias, mode=mode)
    assert named in str(refusal.value)


@pytest.mark.parametrize("mode", ["interpret", "tpu"])
@pytest.mark.parametrize(
    "block", [(8,), (8, 128, 1), (0, 128), (8, -128), (8.0, 128), (True, 128), 8, None, (4, 128), (8, 64), (12, 128)]
)
def test_blocks_are_refused_by_name_in_both_modes(no_launch, block, mode):
    with pytest.raises(ValueError) as refusal:
        fused_bias_relu(FULL, BIAS, block=block, mode=mode)
    assert repr(block) in str(refusal.value)


@pytest.mark.parametrize("mode", ["simulate", "gpu", None, True])
def test_modes_are_refused_by_name(no_launch, mode):
    with pytest.raises(ValueError) as refusal:
        fused_bias_relu(FULL, BIAS, mode=mode)
    assert repr(mode) in str(refusal.value) and "('interpret', 'tpu')" in str(refusal.value)


def test_target_mode_needs_a_tpu_and_operands_on_it(no_launch, monkeypatch):
    x, bias = jnp.ones((8, 128)), jnp.ones(128)
    with pytest.raises(RuntimeError, match=r"found 'cpu'"):
        fused_bias_relu(x, bias, mode="tpu")
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    with pytest.raises(RuntimeError, match="found them on cpu"):
        fused_bias_relu(x, bias, mode="tpu")
