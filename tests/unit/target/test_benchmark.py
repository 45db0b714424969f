"""What `target_benchmark` refuses, and what it does on a stub of a TPU, whose times mean nothing."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kernel_audit.target import benchmark_on, target_benchmark

SIDE_KEYS = {"compile_seconds", "samples_ms", "median_ms", "p90_ms"}


def doubled(x):
    return 2 * x


def untouched(*_):
    raise AssertionError("traced before the refusal")


def no_clock():
    raise AssertionError("timed before the refusal")


def test_a_cpu_is_refused_before_anything_is_compiled_or_timed(monkeypatch):
    monkeypatch.setattr(time, "perf_counter", no_clock)
    with pytest.raises(RuntimeError) as refusal:
        target_benchmark(untouched, untouched, (jnp.ones(4),))
    assert str(refusal.value) == ("TPU benchmark requires real TPU inputs; interpretation timings are not accepted")
    assert "found backend 'cpu'" in refusal.value.__notes__[0]


@pytest.mark.parametrize(
    "args", [(), (np.ones(4, np.float32),), (2.0,), ({"x": np.ones(4)},)], ids=["none", "numpy", "number", "tree"]
)
def test_inputs_that_lie_nowhere_are_refused(stub_tpu, args):
    with pytest.raises(RuntimeError, match="real TPU inputs"):
        target_benchmark(untouched, untouched, args)


def test_inputs_on_another_device_are_refused(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    with pytest.raises(RuntimeError, match="real TPU inputs") as refusal:
        target_benchmark(untouched, untouched, (jnp.ones(4),))
    assert "CPU" in refusal.value.__notes__[0].upper()


def test_a_tpu_is_no_gpu(stub_tpu):
    with pytest.raises(RuntimeError, match="real GPU inputs"):
        benchmark_on("gpu", untouched, untouched, (jnp.ones(4),))


def test_traced_inputs_are_refused(stub_tpu):
    with pytest.raises(RuntimeError, match="real TPU inputs"):
        jax.make_jaxpr(lambda x: target_benchmark(untouched, untouched, (x,)))(jnp.ones(4))


@pytest.mark.parametrize("repeats", [4, 0, -1, 20.0, True, "20", None], ids=repr)
def test_too_few_repeats_are_refused_on_a_target(stub_tpu, repeats):
    with pytest.raises(ValueError) as refusal:
        target_benchmark(untouched, untouched, (jnp.ones(4),), repeats=repeats)
    assert repr(repeats) in str(refusal.value)


def test_the_missing_target_comes_before_the_repeats():
    with pytest.raises(RuntimeError):
        target_benchmark(untouched, untouched, (jnp.ones(4),), repeats=1)


class Clock:
    """Counts seconds: one for each look at it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 1.0
        return self.seconds


def test_what_is_recorded(stub_tpu, monkeypatch):
    """On the stub, with a clock that counts its own calls."""
    monkeypatch.setattr(time, "perf_counter", Clock())
    record = target_benchmark(doubled, doubled, (jnp.ones(4),), repeats=7)
    assert set(record) == {"candidate", "baseline", "actual_backend", "device_kind", "boundary"}
    for side in ("candidate", "baseline"):
        assert record[side].keys() == SIDE_KEYS
        assert record[side]["samples_ms"] == [1000.0] * 7
        assert (record[side]["median_ms"], record[side]["p90_ms"]) == (1000.0, 1000.0)
        assert record[side]["compile_seconds"] >= 1.0
    assert record["actual_backend"] == "tpu"
    assert "padding and cropping inside" in record["boundary"]


def test_five_warm_ups_one_compilation_and_every_leaf_waited_for(stub_tpu, monkeypatch):
    compiled, waited = [], []
    authored = jax.jit

    def counted(function):
        compiled.append(function)
        return authored(function)

    def wait(tree):
        waited.append(len(jax.tree.leaves(tree)))
        return tree

    monkeypatch.setattr(jax, "jit", counted)
    monkeypatch.setattr(jax, "block_until_ready", wait)

    def pair(x):
        return {"sum": x + x, "rest": [x, -x]}

    target_benchmark(pair, doubled, (jnp.ones(4),))
    assert compiled == [pair, doubled]
    assert waited == [3] * 25 + [1] * 25
