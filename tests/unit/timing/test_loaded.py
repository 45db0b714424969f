"""Guards that listen to JAX, and programs that are not timed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

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


SPEC = jax.ShapeDtypeStruct((8, 128), np.dtype("float32"))


def loaded(function: Callable[..., Any], count: int) -> LoadedSide:
    return LoadedSide("candidate", "here", capture(function, (SPEC,) * count).export(Target("cpu")))


def looked(side: LoadedSide, operands: list[Any]) -> str:
    return Transfers(SimpleNamespace(latest=operands), [side.taken_at, side.taken_at]).look()[0]


def test_operands_that_a_call_would_move_are_found():
    side = loaded(lambda x, y: x + y, 2)
    here, host = jax.device_put(np.ones((8, 128), np.float32), jax.devices()[0]), np.ones((8, 128), np.float32)
    assert looked(side, [here, here]) == ""
    assert looked(side, [here, host]) == "transfer"


def test_an_array_on_another_device_is_not_where_the_program_takes_it():
    """In a process of its own, with two devices: this one has one."""
    code = """
import jax, numpy as np
from types import SimpleNamespace
from kernel_audit.timing.loaded import Transfers
jax.config.update("jax_num_cpu_devices", 2)
first, second = jax.devices()
one = jax.device_put(np.ones(8, np.float32), first)
taken = jax.jit(lambda x: x + 1).lower(one).compile().input_shardings[0]
looks = [Transfers(SimpleNamespace(latest=[jax.device_put(one, at)]), [taken]).look()[0] for at in (first, second)]
assert looks == ["", "transfer"], looks
mesh = jax.sharding.Mesh(np.array([first, second]), ("data",))
split, whole = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*each)) for each in (("data",), ()))
taken = jax.jit(lambda x: x + 1).lower(jax.ShapeDtypeStruct((8,), np.float32, sharding=split)).compile().input_shardings[0]
looks = [Transfers(SimpleNamespace(latest=[jax.device_put(one, at)]), [taken]).look()[0] for at in (split, whole)]
assert looks == ["", "transfer"], looks
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-600:]


def test_operands_that_a_program_does_not_use_lie_anywhere():
    here, host = jax.device_put(np.ones((8, 128), np.float32), jax.devices()[0]), np.ones((8, 128), np.float32)
    assert looked(loaded(lambda x, y: x + 1, 2), [here, here]) == ""
    assert Transfers(SimpleNamespace(latest=[host]), [[None]]).look() == ("", 0)


def test_bytes_for_a_target_are_not_timed_on_a_cpu():
    program = capture(lambda x: x + 1, (jax.ShapeDtypeStruct((8, 128), np.dtype("float32")),))
    with pytest.raises(EnvironmentFault, match="another platform"):
        LoadedSide("candidate", "for a TPU", program.export(Target("tpu")))
