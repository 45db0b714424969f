"""A target mode is traced as if there were a target, and whatever hinders that is said."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl

from kernel_audit.matrix.assemble import _opened
from kernel_audit.matrix.batch import Told
from kernel_audit.program import CandidateRaised, capture
from kernel_audit.program.opened_door import changeable_answers, traced_for_target

KIND = "TPU v5 lite"
SPEC = jax.ShapeDtypeStruct((8, 128), jnp.float32)


def told(function):
    """What a subject worker tells of a target mode."""
    with changeable_answers("tpu", KIND) as claim:
        made = function()
        try:
            program = traced_for_target(lambda: capture(made, [SPEC], device_kind=KIND), claim)
        except CandidateRaised as error:
            refused = {"raised": error.type_name, "message": error.message, "at": error.location}
            return Told("finished", {"refused": refused}, Path())
    kernels = [each.authored_interpret for each in program.kernels]
    return Told("finished", {"authored": kernels, "live": len(program.live_kernels())}, Path())


def guarded(asks, *, interpret=False, kernel=True, live=True):
    """A target mode behind a guard, made when the answers are in place."""

    def make():
        def body(x_ref, out_ref):
            out_ref[...] = x_ref[...]

        def function(x):
            if not asks(x):
                raise RuntimeError("no TPU")
            if not kernel:
                return x
            found = pl.pallas_call(body, out_shape=SPEC, interpret=interpret)(x)
            return found if live else x + x

        return function

    return make


def by_name():
    from jax import default_backend

    return lambda x: default_backend() == "tpu"


HONEST = {
    "backend": lambda x: jax.default_backend() == "tpu",
    "devices": lambda x: jax.devices()[0].platform == "tpu",
    "devices of a platform": lambda x: jax.local_devices(backend="tpu")[0].device_kind == KIND,
    "no guard": lambda x: True,
}


@pytest.mark.parametrize("asks", HONEST.values(), ids=HONEST)
def test_an_honest_guard_lets_a_target_pass(asks):
    assert _opened(told(guarded(asks)))[0] == "refused"


def test_a_name_taken_at_import_is_told_the_same():
    assert _opened(told(lambda: guarded(by_name())()))[0] == "refused"


def test_what_hinders_a_target_mode_is_said():
    traced = _opened(told(guarded(lambda x: x.devices())))
    assert traced[:2] == ("raises-on-target", "ConcretizationTypeError") and "(test_opened_door.py:" in traced[2]
    assert _opened(told(guarded(lambda x: False)))[:2] == ("raises-on-target", "RuntimeError")
    assert _opened(told(guarded(lambda x: True, interpret=True)))[0] == "simulates"
    assert _opened(told(guarded(lambda x: True, kernel=False)))[0] == "no-kernel"
    assert _opened(told(guarded(lambda x: True, live=False)))[0] == "kernel-unused"


def test_a_worker_that_died_is_no_open_door():
    assert _opened(Told("crashed", {}, Path(), "signal 11")) == ("crashed", "", "signal 11")


def test_answers_are_the_true_ones_again():
    before = jax.default_backend, jax.devices, jax.local_devices
    with changeable_answers("tpu", KIND) as claim:
        assert jax.default_backend() == "cpu" and jax.devices()[0].platform == "cpu"
        with claim():
            assert jax.default_backend() == "tpu" and jax.devices()[0].platform == "cpu"
            assert jax.devices("cpu")[0].platform == "cpu"
        assert jax.default_backend() == "cpu"
    with changeable_answers("gpu", "NVIDIA H200") as claim, claim(devices=True):
        assert jax.default_backend() == "gpu" and jax.devices("cuda")[0].platform == "gpu"
    assert (jax.default_backend, jax.devices, jax.local_devices) == before
