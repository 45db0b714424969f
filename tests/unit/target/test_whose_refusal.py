"""Who refused: the function's own guard, a mistake of its own, or Pallas. Only the last is a compiler's refusal."""

from __future__ import annotations

import sys

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl

from kernel_audit.program import CandidateRaised, capture
from kernel_audit.target.whose_refusal import stage_of

X = jax.ShapeDtypeStruct((8, 128), jnp.float32)


@pytest.fixture(autouse=True)
def whole_tracebacks():
    """As the worker that exports has it."""
    before = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    yield
    jax.config.update("jax_traceback_filtering", before)


def guarded(x):
    raise ValueError("block must be a multiple of 128")


def asserted(x):
    assert x.shape[0] == 16, "sixteen rows"


def mistaken(x):
    return None + 1


def shapes_mixed_up(x):
    return jnp.zeros(3) + jnp.zeros(4)


def exits(x):
    sys.exit(0)


def reads_a_number(x):
    return float(x)


def in_a_kernel(body, **options):
    return lambda x: pl.pallas_call(body, out_shape=X, **options)(x)


def mistaken_body(x_ref, out_ref):
    out_ref[...] = jnp.zeros(3) + jnp.zeros(4)


def guarded_body(x_ref, out_ref):
    raise NotImplementedError("not on this device")


def doubled(x_ref, out_ref):
    out_ref[...] = 2.0 * x_ref[...]


flat = pl.BlockSpec((8,), lambda i: (i,))  # of an operand with two dimensions


@pytest.mark.parametrize(
    ("function", "stage"),
    [
        (guarded, "guard"),
        (asserted, "guard"),
        (in_a_kernel(guarded_body), "guard"),
        (jax.jit(guarded), "guard"),
        (mistaken, "candidate"),
        (shapes_mixed_up, "candidate"),
        (exits, "candidate"),
        (reads_a_number, "candidate"),
        (in_a_kernel(mistaken_body), "candidate"),
        (in_a_kernel(doubled, in_specs=[flat], grid=(1,)), "lowering"),
    ],
)
def test_the_stage(function, stage):
    with pytest.raises(CandidateRaised) as caught:
        capture(function, (X,), device_kind="TPU v5 lite")
    assert stage_of(caught.value) == stage
