"""Checkpoint policies put on a step from outside: values stay, work and memory change, a lost name is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import pallas as pl

from kernel_audit.errors import AuditFileError
from kernel_audit.profile.counting import counted
from kernel_audit.profile.policy_job import _lost
from kernel_audit.program.checkpoint_policies import interceptable, policy_of, under
from kernel_audit.records import PolicyReport
from kernel_audit.report.profile import policy_lines

LAYERS, ROWS, WIDTH = 4, 8, 16
OPERANDS = (np.full((LAYERS, WIDTH, WIDTH), 0.1, np.float32), np.ones((ROWS, WIDTH), np.float32))
ONE_LAYER = 2 * ROWS * WIDTH * WIDTH


@pytest.fixture(autouse=True)
def intercepted() -> Iterator[None]:
    with interceptable():
        yield


def scanned(W: jax.Array, x: jax.Array) -> jax.Array:
    def body(h: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
        return jnp.tanh(checkpoint_name(h @ w, "pre")), None

    return jnp.sum(jax.lax.scan(body, x, W)[0])


def flat(W: jax.Array, x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.tanh(checkpoint_name(x @ W[0], "pre")))


def traced(function: Callable[..., Any], policy: str) -> tuple[Any, int]:
    with under(policy_of(policy)) as made:
        jaxpr = jax.jit(lambda *given: jax.value_and_grad(function)(*given)).trace(*OPERANDS).jaxpr
        return counted(jaxpr), made()


def test_all_computes_every_layer_again() -> None:
    none, all_ = traced(scanned, "none")[0], traced(scanned, "all")[0]
    again = all_.flops - none.flops
    assert LAYERS * ONE_LAYER <= again <= LAYERS * (ONE_LAYER + 4 * ROWS * WIDTH)


def test_a_saved_name_is_not_computed_again() -> None:
    none, saved = traced(scanned, "none")[0], traced(scanned, "save:pre")[0]
    assert 0 <= saved.flops - none.flops < ONE_LAYER
    assert traced(scanned, "save:other")[0].flops == traced(scanned, "all")[0].flops


def test_an_offloaded_name_goes_to_the_host_and_back() -> None:
    counts = traced(scanned, "offload:pre")[0]
    assert counts.transfer_bytes == 2 * LAYERS * ROWS * WIDTH * 4
    assert traced(scanned, "save:pre")[0].transfer_bytes == 0


def test_scan_bodies_are_checkpointed_and_else_the_whole() -> None:
    assert traced(scanned, "all")[1] == 1 and traced(flat, "all")[1] == 1
    assert traced(scanned, "none")[1] == 0
    assert traced(flat, "all")[0].flops > traced(flat, "none")[0].flops


@pytest.mark.parametrize(("function", "policy"), [(scanned, "save:pre"), (flat, "offload:pre")])
def test_values_stay(function: Callable[..., Any], policy: str) -> None:
    wanted = jax.value_and_grad(function)(*OPERANDS)
    with under(policy_of(policy)):
        found = jax.jit(lambda *given: jax.value_and_grad(function)(*given))(*OPERANDS)
    for left, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)


def test_a_function_that_kept_the_replaced_grad_is_reached_too() -> None:
    kept = jax.grad(scanned)
    with under(policy_of("all")) as made:
        jax.make_jaxpr(kept)(*OPERANDS)
        assert made() == 1


def test_nothing_is_left_replaced(intercepted: None) -> None:
    replaced = jax.grad, jax.lax.scan
    with interceptable():
        pass
    assert (jax.grad, jax.lax.scan) == replaced


@pytest.mark.parametrize("text", ["", "some", "save", "save:", "save:a,,b", "offload:1", "none:a"])
def test_another_text_is_no_policy(text: str) -> None:
    with pytest.raises(AuditFileError, match="unknown checkpoint policy"):
        policy_of(text)


def doubled(x: jax.Array) -> jax.Array:
    def body(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = 2 * x_ref[...]

    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True, name="doubled")(x)


def kernel_step(named_inside: bool) -> Callable[..., jax.Array]:
    """A kernel whose gradient rule keeps its result; the name is on that result, or on what the caller got of it."""

    @jax.custom_vjp
    def rule(x: jax.Array) -> jax.Array:
        return doubled(x)

    def forward(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        out = doubled(x)
        out = checkpoint_name(out, "out") if named_inside else out
        return out, out

    rule.defvjp(forward, lambda out, given: (2 * given + 0 * out,))

    def loss(W: jax.Array, x: jax.Array) -> jax.Array:
        out = rule(x @ W[0])
        return jnp.sum(jnp.tanh(out if named_inside else checkpoint_name(out, "out")))

    return loss


@pytest.mark.parametrize("named_inside", [True, False])
def test_a_kernel_whose_residual_lost_its_name_is_named(named_inside: bool) -> None:
    function = kernel_step(named_inside)
    none, saved = traced(function, "none")[0], traced(function, "save:out")[0]
    assert none.kernels == {"doubled": 1} and none.named == {"doubled": {"out"}}
    lost = _lost(policy_of("save:out"), none, saved)
    if named_inside:
        assert lost == []
    else:
        assert len(lost) == 1 and "doubled" in lost[0] and "2 times" in lost[0] and "out" in lost[0]
    assert _lost(policy_of("save:pre"), none, traced(function, "save:pre")[0]) == []


def _tried(monkeypatch: pytest.MonkeyPatch, failing: str) -> PolicyReport:
    """Twins of `scanned`; the program of the policy `failing` does not run."""
    import kernel_audit.profile.policy_job as job

    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    step = SimpleNamespace(
        name="step",
        side="baseline",
        dims={},
        local=scanned,
        host=list(OPERANDS),
        shardings=[whole, whole],
        with_local=lambda local: jax.value_and_grad(local),
        specs=lambda: [jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=whole) for each in OPERANDS],
    )
    under_way = {"policy": ""}

    def placed(array: np.ndarray, at: Any) -> jax.Array:
        if under_way["policy"] == failing:
            raise RuntimeError("RESOURCE_EXHAUSTED: out of memory")
        return jnp.asarray(array)

    monkeypatch.setattr(job, "placed_step", lambda *_: step)
    monkeypatch.setattr(job, "jax", Replacing(jax, device_put=placed))
    monkeypatch.setattr(job.msgspec, "convert", lambda value, kind: value)
    steps = SimpleNamespace(begin=lambda name: under_way.update(policy=name), finish=lambda *_: None)
    about = {"audit": {}, "roots": [], "side": "", "devices": 1, "dims": {}}
    told = job.policy_twins(steps, policies=["all"], **about)
    monkeypatch.undo()
    return msgspec.convert(told, PolicyReport)


class Replacing:
    """A module with something in it replaced."""

    def __init__(self, module: Any, **names: Any) -> None:
        self._module, self._names = module, names

    def __getattr__(self, name: str) -> Any:
        return self._names.get(name) or getattr(self._module, name)


def test_where_the_step_without_a_policy_does_not_run_nothing_was_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    report = _tried(monkeypatch, "none")
    assert [each.within for each in report.twins] == [None, None]
    assert "not run" in report.twins[0].reason and report.twins[1].reason.startswith("nothing was compared")
    assert not report.compared
    assert "nothing was compared" in policy_lines(report)[3]


@pytest.mark.parametrize(("failing", "within"), [("", [True, True]), ("all", [True, None])])
def test_a_twin_that_does_not_fit_is_an_outcome(failing: str, within: list, monkeypatch: pytest.MonkeyPatch) -> None:
    report = _tried(monkeypatch, failing)
    assert [each.within for each in report.twins] == within and report.compared
