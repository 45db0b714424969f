"""Values of the built-in kernels and baselines against NumPy, in both interpreters."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from kernel_audit.kernels.axpy_references import (
    added_jnp,
    axpy_oracle,
    axpy_rounded_early,
    axpy_swapped,
    fused_jnp,
)
from kernel_audit.kernels.blocked_axpy import blocked_axpy
from kernel_audit.kernels.pipelined_axpy import pipelined_axpy

DTYPES = ("float32", "bfloat16")


def operands(shape, dtype, seed=5):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=shape).astype(jnp.dtype(dtype)) for _ in range(2))


def expected(x, y):
    return axpy_oracle(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("block", [(2, 4), (4, 8), (3, 5)])
@pytest.mark.parametrize("shape", [(1, 1), (4, 8), (5, 9), (1, 11), (7, 1)])
def test_blocked_axpy_is_exact(shape, block, dtype):
    x, y = operands(shape, dtype)
    result = blocked_axpy(x, y, block=block)
    assert result.shape == shape and result.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(result), expected(x, y))


@pytest.mark.parametrize(
    ("shape", "dtype", "options"),
    [
        ((1, 1), "bfloat16", {}),
        ((9, 129), "float32", {"buffers": 3}),
        ((9, 129), "bfloat16", {"no_pipelining": True}),
        ((17, 257), "float32", {"block": (16, 256)}),
    ],
)
def test_pipelined_axpy_is_exact_when_simulated(shape, dtype, options):
    x, y = operands(shape, dtype)
    result = pipelined_axpy(x, y, **options)
    assert result.shape == shape and result.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(result), expected(x, y))


@pytest.mark.parametrize("no_pipelining", [False, True])
def test_pipelined_axpy_is_exact_in_the_generic_interpreter(no_pipelining, generic_interpreter):
    x, y = operands((17, 257), "float32")
    result = pipelined_axpy(x, y, buffers=3, no_pipelining=no_pipelining)
    assert generic_interpreter == [True]
    np.testing.assert_array_equal(np.asarray(result), expected(x, y))


@pytest.fixture
def generic_interpreter(monkeypatch):
    """Runs every kernel in the generic interpreter; the list holds what each one was run with."""
    from jax.experimental import pallas as pl

    authored, used = pl.pallas_call, []

    def interpreted(*arguments, **options):
        used.append(True)
        return authored(*arguments, **{**options, "interpret": True})

    monkeypatch.setattr(pl, "pallas_call", interpreted)
    return used


def kernel_parameters(closed_jaxpr):
    """Parameters of the one kernel equation of a traced kernel."""
    (kernel,) = [e for e in closed_jaxpr.jaxpr.eqns if e.primitive.name == "pallas_call"]
    return kernel.params


def test_target_mode_traces_the_simulated_program_uninterpreted(monkeypatch):
    shape = jax.ShapeDtypeStruct((9, 129), jnp.float32)
    simulated = jax.make_jaxpr(pipelined_axpy)(shape, shape)
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    with jax.sharding.use_abstract_mesh(simulated_mesh()):
        target = jax.make_jaxpr(lambda x, y: pipelined_axpy(x, y, mode="tpu"))(shape, shape)
    assert kernel_parameters(target)["interpret"] is False
    assert kernel_parameters(simulated)["interpret"].detect_races
    assert kernel_parameters(simulated)["interpret"].vector_clock_size == 256
    assert str(kernel_parameters(target)["jaxpr"]) == str(kernel_parameters(simulated)["jaxpr"])


def simulated_mesh():
    from kernel_audit.kernels import pipelined_axpy as module

    return module._simulated_mesh()


@pytest.mark.parametrize("baseline", [fused_jnp, added_jnp])
@pytest.mark.parametrize("dtype", DTYPES)
def test_baselines_are_exact_eager_and_jitted(baseline, dtype):
    x, y = map(jnp.asarray, operands((9, 129), dtype))
    for function in (baseline, jax.jit(baseline)):
        result = function(x, y)
        assert result.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(result), expected(np.asarray(x), np.asarray(y)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_oracle_stays_in_the_dtype_of_its_operands(dtype):
    x = np.array([[1.0, -0.0, np.inf, 2.0**124]], dtype)
    y = np.array([[-2.0, -0.0, -np.inf, 1.0]], dtype)
    result = axpy_oracle(x, y)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result, np.array([[0.0, -0.0, np.nan, 2.0**125 + dtype(1)]], dtype))
    assert np.signbit(result[0, 1])


def test_controls_differ_from_the_oracle_where_they_can():
    x, y = operands((8, 128), "float32")
    assert not np.array_equal(axpy_swapped(x, y), axpy_oracle(x, y))
    assert not np.array_equal(axpy_rounded_early(x, y), axpy_oracle(x, y))
    assert axpy_rounded_early(x, y).dtype == np.float32
    coarse_x, coarse_y = (a.astype(ml_dtypes.bfloat16).astype(np.float32) for a in (x, y))
    np.testing.assert_array_equal(axpy_rounded_early(coarse_x, coarse_y), axpy_oracle(coarse_x, coarse_y))
