"""Around a kernel values may be moved; calculating with them there is seen, however it is wrapped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl

from kernel_audit.inspect import calculations
from kernel_audit.program import capture

SPEC = jax.ShapeDtypeStruct((9, 129), jnp.float32)


def kernel(x: jax.Array, y: jax.Array) -> jax.Array:
    def body(x_ref: Any, y_ref: Any, out_ref: Any) -> None:
        out_ref[...] = 2 * x_ref[...] + y_ref[...]

    return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True)(x, y)


MOVES: dict[str, Callable[..., Any]] = {
    "alone": kernel,
    "padded by reflection": lambda x, y: kernel(*(jnp.pad(each, ((0, 7), (0, 0)), mode="reflect") for each in (x, y)))[
        :9
    ],
    "rows by computed number": lambda x, y: kernel(x, y)[(jnp.arange(9) * 2) % 9],
    "put into zeros": lambda x, y: jnp.zeros((20, 129)).at[:9].set(kernel(x, y))[:9],
    "jitted, transposed, cast": jax.jit(lambda x, y: kernel(x.T.T.astype(jnp.bfloat16).astype(x.dtype), y)),
    "under vmap": lambda x, y: jax.vmap(lambda a, b: kernel(a[None], b[None])[0])(x, y),
    "in a branch": lambda x, y: jax.lax.cond(jnp.arange(3)[1] + 1 > 1, kernel, kernel, x, y),
    "printed": lambda x, y: (jax.debug.print("{}", x), kernel(x, y))[1],
    "a dead sum": lambda x, y: (x + y, kernel(x, y))[1],
}
CALCULATES: dict[str, tuple[Callable[..., Any], str]] = {
    "before": (lambda x, y: kernel(2 * x, y), "mul"),
    "after": (lambda x, y: kernel(x, y) + 0 * x, "add"),
    "beside": (lambda x, y: jnp.where(kernel(x, y) == 0, x, y), "select_n"),
    "maximum": (lambda x, y: jnp.maximum(kernel(x, y), x), "max"),
    "as whole numbers": (lambda x, y: (x.astype(jnp.int32) + 1).astype(x.dtype) + kernel(x, y), "add"),
    "added while put": (lambda x, y: x.at[:].add(kernel(x, y)), "scatter"),
    "by a callback": (lambda x, y: jax.pure_callback(lambda each: each, SPEC, kernel(x, y)), "pure_callback"),
    "jitted": (jax.jit(lambda x, y: -kernel(x, y)), "neg"),
    "in a branch": (lambda x, y: jax.lax.cond(True, lambda: kernel(x, y), lambda: 2 * x + y), "mul"),
    "in a loop": (lambda x, y: jax.lax.fori_loop(0, 3, lambda i, each: each * 2, kernel(x, y)), "mul"),
    "on what a jitted kernel gave": (lambda x, y: jnp.sin(jax.jit(kernel)(x, y)), "sin"),
    "on a kernel of constants": (lambda x, y: kernel(jnp.ones((9, 129)), jnp.ones((9, 129))) * x, "mul"),
}


@pytest.mark.parametrize("function", MOVES.values(), ids=MOVES)
def test_moving_values_is_no_arithmetic(function: Callable[..., Any]) -> None:
    assert calculations(capture(function, (SPEC, SPEC))) == []


@pytest.mark.parametrize(("function", "name"), CALCULATES.values(), ids=CALCULATES)
def test_arithmetic_outside_of_the_kernel_is_seen(function: Callable[..., Any], name: str) -> None:
    assert any(each.startswith(name) for each in calculations(capture(function, (SPEC, SPEC))))
