"""Kernels that no result depends on are seen, however the author runs them."""

from __future__ import annotations

from typing import Any

import jax
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from kernel_audit.program import capture

OPERAND = jax.ShapeDtypeStruct((8, 128), "float32")


def _doubled(x: Any, interpret: Any) -> Any:
    def body(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref[...] * 2

    return pl.pallas_call(body, out_shape=OPERAND, interpret=interpret)(x)


@pytest.mark.parametrize("interpret", [False, True, pltpu.InterpretParams()], ids=["target", "generic", "tpu"])
def test_an_unused_kernel_is_not_live(interpret: Any) -> None:
    def unused(x: Any) -> Any:
        _doubled(x, interpret)
        return x * 2

    used = capture(lambda x: _doubled(x, interpret), (OPERAND,))
    program = capture(unused, (OPERAND,))
    assert len(used.kernels) == len(used.live_kernels()) == 1
    assert len(program.kernels) == 1 and program.live_kernels() == []
