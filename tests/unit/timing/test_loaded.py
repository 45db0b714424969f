"""Guards that listen to JAX, and programs that are not timed."""

from __future__ import annotations

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernel_audit.errors import EnvironmentFault
from kernel_audit.program import Target, capture
from kernel_audit.timing.loaded import LoadedSide, Recompilation, Transfers


def test_a_compilation_between_two_looks_is_heard():
    guard = Recompilation()
    jax.jit(lambda x: x + 1)(jnp.ones(3))
    guard.start()
    assert guard.look() == ("", 0)
    jax.jit(lambda x: x * 3 - 7)(jnp.ones(3))
    assert guard.look() == ("recompiled", 0)
    assert guard.look() == ("", 0)


@pytest.mark.parametrize("operands, reason", [([np.ones(3)], "transfer"), ([jnp.ones(3)], ""), ([], "")])
def test_operands_of_the_host_would_be_moved_inside_the_boundary(operands: list, reason: str):
    assert Transfers(SimpleNamespace(latest=operands)).look() == (reason, 0)


def test_bytes_for_a_target_are_not_timed_on_a_cpu():
    program = capture(lambda x: x + 1, (jax.ShapeDtypeStruct((8, 128), np.dtype("float32")),))
    with pytest.raises(EnvironmentFault, match="another platform"):
        LoadedSide("candidate", "for a TPU", program.export(Target("tpu")))
