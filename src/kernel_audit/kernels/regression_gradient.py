"""The sum of squared residuals |Xw - y|^2 and its gradient, with one pass over X where ordinary JAX makes two.

X is by far the largest operand: each block of its rows gives its residuals and, while it is still on the chip, its part of the
gradient. There are two forms of one contract, one for TPUs and one for GPUs.
"""

from __future__ import annotations

import jax

from .preconditions import require_gpu, require_mode, require_regression, require_tpu
from .regression_tpu import default_tpu_rows, require_tpu_rows, tpu_sums
from .regression_triton import default_triton_rows, require_triton_rows, triton_sums

__all__ = ["FORMS", "regression_gradient"]

# form -> the mode in which it runs on its target
FORMS = {"tpu": "tpu", "triton": "gpu"}


def regression_gradient(
    X: jax.Array,
    w: jax.Array,
    y: jax.Array,
    *,
    rows: int | None = None,
    form: str = "tpu",
    mode: str = "interpret",
) -> tuple[jax.Array, jax.Array]:
    """(squared sum, gradient sum) of the residuals r = Xw - y: sum(r^2), float32[], and its gradient 2 X^T r, float32[d].

    Divided by the number of rows n they are the loss L(w) = |Xw - y|^2 / n and its gradient; sums of parts of the rows add up.
    X is (n, d), float32 or bfloat16, and read once; w is (d,) and y (n,), both float32. Arithmetic and accumulation are
    float32. n is any number from 1: the last block's rows beyond it are masked, whatever lies there.

    `form` "tpu": `rows` of X a grid step, a multiple of 128; default: a block of about a MiB, 512 rows of 512 float32 and 1,024
    of 512 bfloat16. `form` "triton": `rows` of X a pass of a program's loop, a power of two. Mode "interpret" runs in the
    generic interpreter, wherever it is; "tpu" and "gpu" run the form of that name on that target and nowhere else.

    Raises ValueError, before launch, for operands that do not fit together, are empty, of another rank or dtype or too wide for
    a form, and for rows, a form or a mode that is not supported; RuntimeError without the target, or without operands on it.
    """
    require_regression(X, w, y)
    if not isinstance(form, str) or form not in FORMS:
        raise ValueError(f"form must be one of {tuple(FORMS)}, got {form!r}")
    require_mode(mode, off_target="interpret", target=FORMS[form])
    d = X.shape[1]
    if form == "tpu":
        rows = default_tpu_rows(d, X.dtype) if rows is None else rows
        require_tpu_rows(rows, d, X.dtype)
    else:
        rows = default_triton_rows(d) if rows is None else rows
        require_triton_rows(rows, d)
    if mode != "interpret":
        (require_tpu if form == "tpu" else require_gpu)(X, w, y)
    sums = tpu_sums if form == "tpu" else triton_sums
    return sums(X, w, y, rows=rows, interpret=mode == "interpret")
