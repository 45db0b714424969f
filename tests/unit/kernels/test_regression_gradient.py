"""The regression sums in both forms: values against float64, rows beyond the last one, refusals, programs for targets."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernel_audit.kernels import regression_references as references
from kernel_audit.kernels.regression_gradient import FORMS, regression_gradient
from kernel_audit.kernels.regression_references import regression_oracle
from kernel_audit.kernels.regression_tpu import _parts, default_tpu_rows
from kernel_audit.kernels.regression_triton import default_triton_rows
from kernel_audit.program import Generic, Target, TpuInterpreter, capture, run_simulated

DTYPES = ("float32", "bfloat16")
BASELINES = (references.ordinary_gradient, references.hand_gradient, references.one_read_scan)
CONTROLS = ("gradient_halved", "last_rows_dropped", "means_for_sums", "residuals_negated", "rows_counted_twice")
DEVICE = {"tpu": "TPU v5 lite", "triton": "NVIDIA H200"}
PLATFORM = {"tpu": "tpu", "triton": "cuda"}
# Sums of up to 2,049 float32 terms in any order: the square root of that many half ulps, and half as much again.
NORMWISE = 4e-6


def operands(n, d, dtype="float32", seed=5):
    rng = np.random.default_rng(seed)
    X, w, y = rng.normal(size=(n, d)), rng.normal(size=d), rng.normal(size=n)
    return X.astype(np.float32).astype(jnp.dtype(dtype)), w.astype(np.float32), y.astype(np.float32)


def assert_right(found, given, bound=NORMWISE):
    squares, gradient = (np.asarray(each) for each in found)
    right_squares, right_gradient = regression_oracle(*[np.asarray(each).astype(np.float64) for each in given])
    assert squares.shape == () and gradient.shape == right_gradient.shape
    assert squares.dtype == gradient.dtype == np.float32
    assert abs(squares - right_squares) <= bound * right_squares
    assert np.abs(gradient - right_gradient).max() <= bound * np.abs(right_gradient).max()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (127, 3), (128, 128), (300, 130), (1025, 33)])
def test_sums_are_right(form, dtype, n, d):
    given = operands(n, d, dtype)
    assert_right(regression_gradient(*given, form=form), given)


@pytest.mark.parametrize(("form", "rows"), [("tpu", 128), ("tpu", 256), ("triton", 1), ("triton", 4), ("triton", 64)])
def test_rows_of_a_block_change_nothing_but_roundings(form, rows):
    given = operands(389, 20)
    assert_right(regression_gradient(*given, form=form, rows=rows), given)


def test_default_blocks():
    assert [default_tpu_rows(512, each) for each in (jnp.float32, jnp.bfloat16)] == [512, 1024]
    assert [default_tpu_rows(d, jnp.float32) for d in (1, 128, 129, 1024, 8192)] == [1024, 1024, 1024, 256, 128]
    assert [default_triton_rows(d) for d in (1, 128, 129, 512, 513, 1024)] == [64, 64, 32, 16, 8, 8]


def program_of(form, n, d, dtype="float32", **keywords):
    return capture(
        regression_gradient, operands(n, d, dtype), keywords={"form": form, **keywords}, device_kind=DEVICE[form]
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_tpu_interpreter_agrees_and_sees_no_race(dtype):
    """It fills rows beyond the last one with NaN, and uninitialised results, too."""
    given = operands(300, 130, dtype)
    mode = TpuInterpreter()
    found = run_simulated(program_of("tpu", 300, 130, dtype, rows=128).executable(mode), list(given))
    assert not found.races
    assert_right(found.outputs, given)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_not_finite_in_a_row_reaches_the_sums(form):
    """Masks keep out what lies beyond the last row, not what lies in it."""
    X, w, y = operands(200, 5)
    X[199, 2] = np.nan
    squares, gradient = regression_gradient(X, w, y, form=form)
    assert np.isnan(squares) and np.isnan(np.asarray(gradient)).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_program_exports_for_its_target_with_one_kernel(form, dtype):
    program = program_of(form, 1000, 100, dtype)
    assert [kernel.name for kernel in program.kernels] == ["regression_gradient"]
    assert program.export(Target(PLATFORM[form])) and program.export(Generic())


@pytest.mark.parametrize("form", FORMS)
def test_nothing_is_made_of_X_outside_the_kernel(form):
    """No padding, no cast and no relayout of X: the kernel's operand is the argument itself."""
    program = program_of(form, 1000, 100, "bfloat16")
    users = [each for each in program.jaxpr.jaxpr.eqns if program.jaxpr.jaxpr.invars[0] in each.invars]
    assert [each.primitive.name for each in users] == ["pallas_call"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_cost_estimate_is_one_read_of_X_and_little_more(form, dtype):
    shapes = [((1 << 20, 512), dtype), ((512,), "float32"), ((1 << 20,), "float32")]
    given = [jax.ShapeDtypeStruct(shape, jnp.dtype(kind)) for shape, kind in shapes]
    traced = jax.make_jaxpr(lambda *each: regression_gradient(*each, form=form))(*given)
    (call,) = [each for each in traced.jaxpr.eqns if each.primitive.name == "pallas_call"]
    claimed = call.params["cost_estimate"].bytes_accessed
    one_read = (1 << 20) * 512 * jnp.dtype(dtype).itemsize
    assert one_read < claimed < 1.01 * one_read


def test_masks_are_in_the_branch_of_the_last_block_and_only_where_there_is_a_tail():
    def selects(n):
        (call,) = [
            each for each in program_of("tpu", n, 128, rows=128).jaxpr.eqns if each.primitive.name == "pallas_call"
        ]
        return str(call.params["jaxpr"]).count("select_n")

    assert selects(256) == 0
    assert selects(257) == 2


@pytest.mark.parametrize("form", FORMS)
def test_target_mode_traces_the_same_kernel_uninterpreted(form, monkeypatch):
    def parameters(**mode):
        traced = jax.make_jaxpr(lambda *given: regression_gradient(*given, form=form, **mode))(*operands(300, 20))
        (kernel,) = [each for each in traced.jaxpr.eqns if each.primitive.name == "pallas_call"]
        return kernel.params

    interpreted = parameters()
    monkeypatch.setattr(jax, "default_backend", lambda: FORMS[form])
    compiled = parameters(mode=FORMS[form])
    assert (interpreted["interpret"], compiled["interpret"]) == (True, False)
    assert str(interpreted["jaxpr"]) == str(compiled["jaxpr"])


# References -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "d"), [(1, 1), (300, 20), (1024, 3), (2049, 5)])
def test_baselines_are_right(baseline, dtype, n, d):
    given = operands(n, d, dtype)
    assert_right(jax.jit(baseline)(*given), given)


def test_the_scan_holds_each_block_back_once():
    text = str(jax.make_jaxpr(references.one_read_scan)(*operands(4096, 8)))
    assert text.count("optimization_barrier") == 1 and text.count("scan[") == 1


@pytest.mark.parametrize("name", CONTROLS)
@pytest.mark.parametrize("n", [2, 129, 300])
def test_controls_differ_from_the_oracle_and_stay_in_its_dtype(name, n):
    given = [each.astype(np.float64) for each in operands(n, 7)]
    wrong, right = getattr(references, name)(*given), regression_oracle(*given)
    assert all(each.dtype == np.float64 for each in wrong)
    assert not all(np.array_equal(a, b) for a, b in zip(wrong, right, strict=True))


# Refusals ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_launch(monkeypatch):
    """A refusal comes before any kernel is made."""
    from jax.experimental import pallas as pl

    def launched(*_, **__):
        raise AssertionError("a kernel was made before the refusal")

    monkeypatch.setattr(pl, "pallas_call", launched)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("width", [1, 8192, 16384, 16385, 32768])
def test_what_is_too_wide_for_a_form_is_refused_by_name(no_launch, form, width):
    given = [jax.ShapeDtypeStruct(each, jnp.float32) for each in ((16, width), (width,), (16,))]
    fits = width <= {"tpu": 8192, "triton": 16384}[form]
    with pytest.raises(AssertionError if fits else ValueError) as refusal:
        regression_gradient(*given, form=form)
    assert fits or f"columns {width}" in str(refusal.value)


@pytest.mark.parametrize(
    ("keywords", "named"),
    [
        ({"rows": True}, "True"),
        ({"rows": 0}, "0"),
        ({"rows": 100}, "multiple of 128 in the form 'tpu', got 100"),
        ({"rows": "128"}, "'128'"),
        ({"rows": 3, "form": "triton"}, "power of two in the form 'triton', got 3"),
        ({"rows": -4, "form": "triton"}, "-4"),
        ({"rows": 1 << 13, "form": "triton"}, "at most 16384 elements of X, got 65536"),
        ({"form": None}, "('tpu', 'triton'), got None"),
        ({"form": "gpu"}, "got 'gpu'"),
        ({"mode": "gpu"}, "('interpret', 'tpu'), got 'gpu'"),
        ({"mode": "tpu", "form": "triton"}, "('interpret', 'gpu'), got 'tpu'"),
        ({"mode": 1}, "got 1"),
    ],
)
def test_parameters_are_refused_by_name(no_launch, keywords, named):
    with pytest.raises(ValueError) as refusal:
        regression_gradient(*operands(16, 8), **keywords)
    assert named in str(refusal.value)


@pytest.mark.parametrize("form", FORMS)
def test_target_mode_needs_the_target_and_operands_on_it(no_launch, monkeypatch, form):
    given, target = [jnp.asarray(each) for each in operands(16, 8)], FORMS[form]
    with pytest.raises(RuntimeError, match=f"needs a {target.upper()} backend, found 'cpu'"):
        regression_gradient(*given, form=form, mode=target)
    monkeypatch.setattr(jax, "default_backend", lambda: target)
    with pytest.raises(RuntimeError, match=f"operands placed on a {target.upper()}, found them on cpu"):
        regression_gradient(*given, form=form, mode=target)


# Parts of a row ---------------------------------------------------------------------------------------------------


def test_a_row_is_the_exact_sum_of_its_bfloat16_parts():
    """Normal numbers above 2^-102: below that the third part would be subnormal in bfloat16."""
    rng = np.random.default_rng(2)
    row = (rng.normal(size=(1, 500)) * 2.0 ** rng.uniform(-90, 90, size=(1, 500))).astype(np.float32)
    for parts in (_parts(row), jax.jit(_parts)(row)):
        assert parts.shape == (16, 500) and parts.dtype == jnp.bfloat16
        np.testing.assert_array_equal(np.asarray(parts).astype(np.float64).sum(axis=0), row[0].astype(np.float64))


@pytest.mark.parametrize("n", [128, 200])
def test_bfloat16_rows_cost_no_precision_of_the_weights(n):
    """Weights with all 24 bits, of which bfloat16 has 8: whole numbers, so that a lost bit shows."""
    rng = np.random.default_rng(4)
    X = rng.integers(-1, 2, (n, 3)).astype(jnp.bfloat16)
    w, y = rng.integers(1 << 22, 1 << 23, 3).astype(np.float32), np.zeros(n, np.float32)
    _, gradient = regression_gradient(X, w, y)
    residuals = X.astype(np.int64) @ w.astype(np.int64)
    right = 2 * residuals @ X.astype(np.int64)
    assert np.abs(np.asarray(gradient, np.float64) - right).max() <= np.abs(right).max() * 2.0**-23
