"""The regression sums: rows lost, counted twice or masked too late, sums not begun or not joined, signs and roundings.

Faults are in one form only; the other form is the package's own.
"""

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton as plgpu

from kernel_audit.kernels.preconditions import require_mode, require_regression
from kernel_audit.kernels.regression_gradient import FORMS, regression_gradient
from kernel_audit.kernels.regression_tpu import default_tpu_rows

ROWS = 128


def _right(X, w, y, rows, form, mode):
    return regression_gradient(X, w, y, rows=rows, form=form, mode=mode)


def _tpu(body, X, w, y, rows, form, mode, *, blocks=None):
    """`body` on each block of 128 rows, in the form for TPUs; everything that the package refuses is refused."""
    if form != "tpu" or mode != "interpret" or rows is not None:
        return _right(X, w, y, rows, form, mode)
    require_regression(X, w, y)
    require_mode(mode, off_target="interpret", target=FORMS[form])
    n, d = X.shape
    default_rows = default_tpu_rows(d, X.dtype)
    if default_rows * d > 1 << 20:  # what is too wide for the package's own form
        return _right(X, w, y, rows, form, mode)
    steps = blocks(n) if blocks else -(-n // ROWS)

    def kernel(x_ref, w_ref, y_ref, gradient_ref, squares_ref):
        body(n, steps, x_ref, w_ref, y_ref, gradient_ref, squares_ref)

    gradient, squares = pl.pallas_call(
        kernel,
        grid=(steps,),
        in_specs=(
            pl.BlockSpec((ROWS, d), lambda i: (i, 0)),
            pl.BlockSpec((1, d), lambda i: (0, 0)),
            pl.BlockSpec((1, ROWS), lambda i: (0, i)),
        ),
        out_specs=(pl.BlockSpec((1, d), lambda i: (0, 0)), pl.BlockSpec((1, ROWS), lambda i: (0, 0))),
        out_shape=(jax.ShapeDtypeStruct((1, d), jnp.float32), jax.ShapeDtypeStruct((1, ROWS), jnp.float32)),
        name="regression_gradient",
    )(X, w[None], y[None])
    return jnp.sum(squares), 2.0 * gradient[0]


def _begin(gradient_ref, squares_ref):
    @pl.when(pl.program_id(0) == 0)
    def _():
        gradient_ref[...] = jnp.zeros_like(gradient_ref)
        squares_ref[...] = jnp.zeros_like(squares_ref)


def _inside(n, shape, axis):
    return pl.program_id(0) * ROWS + jax.lax.broadcasted_iota(jnp.int32, shape, axis) < n


def _masked(n, x_ref):
    x = x_ref[...].astype(jnp.float32)
    return jnp.where(_inside(n, x.shape, 0), x, 0.0)


def _residuals(n, x, w_ref, y_ref):
    residuals = jnp.sum(x * w_ref[...], axis=1)[None] - y_ref[...]
    return jnp.where(_inside(n, residuals.shape, 1), residuals, 0.0)


# Rows -------------------------------------------------------------------------------------------------------------


def tail_not_masked(X, w, y, *, rows=None, form="tpu", mode="interpret"):
    """The last block's rows are used as they lie in memory."""

    def body(n, steps, x_ref, w_ref, y_ref, gradient_ref, squares_ref):
        _begin(gradient_ref, squares_ref)
        x = x_ref[...].astype(jnp.float32)
        residuals = jnp.sum(x * w_ref[...], axis=1)[None] - y_ref[...]
        gradient_ref[...] += jnp.sum(x * residuals.T, axis=0, keepdims=True)
        squares_ref[...] += residuals * residuals

    return _tpu(body, X, w, y, rows, form, mode)


def mask_multiplied(X, w, y, *, rows=None, form="tpu", mode="interpret"):
    """Rows beyond the last one are multiplied by zero: what is not finite there stays so."""

    def body(n, steps, x_ref, w_ref, y_ref, gradient_ref, squares_ref):
        _begin(gradient_ref, squares_ref)
        # A product with a converted truth value would not do: XLA makes a selection of it, and hides the fault.
        left = n - pl.program_id(0) * ROWS - jax.lax.broadcasted_iota(jnp.int32, x_ref.shape, 0)
        x = x_ref[...].astype(jnp.float32) * jnp.clip(left, 0, 1).astype(jnp.float32)
        residuals = _residuals(n, x, w_ref, y_ref)
        gradient_ref[...] += jnp.sum(x * residuals.T, axis=0, keepdims=True)
        squares_ref[...] += residuals * residuals

    return _tpu(body, X, w, y, rows, form, mode)


def residuals_masked_and_rows_not(X, w, y, *, rows=None, form="tpu", mode="interpret"):
    """Zero times what lies beyond the last row: right until that is no number."""

    def body(n, steps, x_ref, w_ref, y_ref, gradient_ref, squares_ref):
        _begin(gradient_ref, squares_ref)
        x = x_ref[...].astype(jnp.float32)
        residuals = _residuals(n, x, w_ref, y_ref)
        gradient_ref[...] += jnp.sum(x * residuals.T, axis=0, keepdims=True)
        squares_ref[...] += residuals * residuals

    return _tpu(body, X, w, y, rows, form, mode)


def tail_dropped(X, w, y, *, rows=None, form="tpu", mode="interpret"):
    """The grid is rounded down: rows after the last whole block add nothing."""
    return _tpu(_plain, X, w, y, rows, form, mode, blocks=lambda n: max(n // ROWS, 1))


def _plain(n, steps, x_ref, w_ref, y_ref, gradient_ref, squares_ref):
    _begin(gradient_ref, squares_ref)
    x = _masked(n, x_ref)
    residuals = _residuals(n, x, w_ref, y_ref)
    gradient_ref[...] += jnp.sum(x * residuals.T, axis=0, keepdims=True)
    squares_ref[...] += residuals * residuals


# Sums -------------------------------------------------------------------------------------------------------------


def sums_not_begun(X, w, y, *, rows=None, form="tpu", mode="interpret"):
    """The results are added to whatever was there."""

    def body(n, steps, x_ref, w_ref, y_ref, gradient_ref, squares_ref):
        x = _masked(n, x_ref)
        residuals = _residuals(n, x, w_ref, y_ref)
        gradient_ref[...] += jnp.sum(x * residuals.T, axis=0, keepdims=True)
        squares_ref[...] += residuals * residuals

    return _tpu(body, X, w, y, rows, form, mode)


def squares_of_the_last_block(X, w, y, *, rows=None, form="tpu", mode="interpret"):
    """The squares are overwritten by each block; the gradient is right."""

    def body(n, steps, x_ref, w_ref, y_ref, gradient_ref, squares_ref):
        _begin(gradient_ref, squares_ref)
        x = _masked(n, x_ref)
        residuals = _residuals(n, x, w_ref, y_ref)
        gradient_ref[...] += jnp.sum(x * residuals.T, axis=0, keepdims=True)
        squares_ref[...] = residuals * residuals

    return _tpu(body, X, w, y, rows, form, mode)


def means(X, w, y, *, rows=None, form="tpu", mode="interpret"):
    """Means over the rows, where sums are promised: parts of the rows could not be joined."""
    squares, gradient = _right(X, w, y, rows, form, mode)
    return squares / X.shape[0], gradient / X.shape[0]


def residuals_negated(X, w, y, *, rows=None, form="tpu", mode="interpret"):
    """y - Xw: the loss is right and the step goes uphill."""
    squares, gradient = _right(X, w, y, rows, form, mode)
    return squares, -gradient


def programs_share_a_row(X, w, y, *, rows=None, form="tpu", mode="interpret"):
    """On a GPU, partial sums of all programs go to one row: the last one wins."""
    if form != "triton" or mode != "interpret" or rows is None or rows < 1 or rows & (rows - 1):
        return _right(X, w, y, rows, form, mode)
    jax.eval_shape(lambda *given: _right(*given, rows, form, mode), X, w, y)  # for its refusals
    n, d = X.shape

    def body(x_ref, w_ref, y_ref, gradient_ref, squares_ref):
        first = pl.program_id(0) * rows
        known = first + jax.lax.broadcasted_iota(jnp.int32, (rows,), 0) < n
        inside = jax.lax.broadcasted_iota(jnp.int32, (columns,), 0) < d
        weights = plgpu.load(w_ref, mask=inside, other=0.0)
        x = plgpu.load(x_ref, mask=known[:, None] & inside[None, :], other=0).astype(jnp.float32)
        residuals = jnp.sum(x * weights[None], axis=1) - plgpu.load(y_ref, mask=known, other=0.0)
        plgpu.store(gradient_ref, jnp.sum(x * residuals[:, None], axis=0)[None], mask=inside[None])
        squares_ref[0] = jnp.sum(residuals * residuals)

    columns = 1 << (d - 1).bit_length()
    gradient, squares = pl.pallas_call(
        body,
        grid=(-(-n // rows),),
        in_specs=(
            pl.BlockSpec((rows, columns), lambda i: (i, 0)),
            pl.BlockSpec((columns,), lambda i: (0,)),
            pl.BlockSpec((rows,), lambda i: (i,)),
        ),
        out_specs=(pl.BlockSpec((1, columns), lambda i: (0, 0)), pl.BlockSpec((1,), lambda i: (0,))),
        out_shape=(jax.ShapeDtypeStruct((1, d), jnp.float32), jax.ShapeDtypeStruct((1,), jnp.float32)),
        name="regression_gradient",
    )(X, w, y)
    return squares[0], 2.0 * gradient[0]


# Roundings --------------------------------------------------------------------------------------------------------


def weights_rounded(X, w, y, *, rows=None, form="tpu", mode="interpret"):
    """Weights in bfloat16, as a matrix unit takes them by default."""
    if w.dtype != jnp.float32:
        return _right(X, w, y, rows, form, mode)
    return _right(X, w.astype(jnp.bfloat16).astype(jnp.float32), y, rows, form, mode)


def narrow_accumulation(X, w, y, *, rows=None, form="tpu", mode="interpret"):
    """The gradient is kept in bfloat16 from block to block."""

    def body(n, steps, x_ref, w_ref, y_ref, gradient_ref, squares_ref):
        _begin(gradient_ref, squares_ref)
        x = _masked(n, x_ref)
        residuals = _residuals(n, x, w_ref, y_ref)
        total = gradient_ref[...] + jnp.sum(x * residuals.T, axis=0, keepdims=True)
        gradient_ref[...] = total.astype(jnp.bfloat16).astype(jnp.float32)
        squares_ref[...] += residuals * residuals

    return _tpu(body, X, w, y, rows, form, mode)


# Right, in an unusual way -----------------------------------------------------------------------------------------


def small_blocks(X, w, y, *, rows=None, form="tpu", mode="interpret"):
    """Blocks of 128 rows, each masked, also where all of its rows exist."""
    return _tpu(_plain, X, w, y, rows, form, mode)


def on_the_matrix_unit(X, w, y, *, rows=None, form="tpu", mode="interpret"):
    """Both products as dots at HIGHEST."""
    exact = jax.lax.Precision.HIGHEST

    def body(n, steps, x_ref, w_ref, y_ref, gradient_ref, squares_ref):
        _begin(gradient_ref, squares_ref)
        x = _masked(n, x_ref)
        predicted = jax.lax.dot_general(w_ref[...], x, (((1,), (1,)), ((), ())), precision=exact)
        residuals = jnp.where(_inside(n, predicted.shape, 1), predicted - y_ref[...], 0.0)
        gradient_ref[...] += jnp.dot(residuals, x, precision=exact)
        squares_ref[...] += residuals * residuals

    return _tpu(body, X, w, y, rows, form, mode)


def upside_down(X, w, y, *, rows=None, form="tpu", mode="interpret"):
    """Rows in the other order: another order of the additions."""
    if X.ndim != 2 or y.ndim != 1:
        return _right(X, w, y, rows, form, mode)
    return _right(X[::-1], w, y[::-1], rows, form, mode)
