"""An oracle for free: the baseline's own jaxpr with every float in float64.

The lifted oracle shares the baseline's mathematics: it finds rounding and indexing errors of the candidate, never a formula
that both have wrong. Needs 64-bit mode (`jax_enable_x64`) in its process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from kernel_audit.errors import CaptureError

Evaluate = Callable[[Any, list[Any], dict[str, Any]], list[Any]]

CALLS = (
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "remat2",
    "checkpoint",
    "remat",
)
_SUB = ("jaxpr", "call_jaxpr", "fun_jaxpr")


def lifted(jaxpr: Any) -> Callable[..., list[jax.Array]]:
    """A function of the jaxpr's inputs that evaluates it with every float in float64.

    Raises CaptureError, while it is traced, naming a primitive that cannot be lifted (a kernel, a foreign call).
    """

    def program(*arguments: Any) -> list[jax.Array]:
        return evaluate_jaxpr(open_jaxpr(jaxpr), constants(jaxpr), [raised(each) for each in arguments], bind_lifted)

    return program


def open_jaxpr(jaxpr: Any) -> Any:
    return getattr(jaxpr, "jaxpr", jaxpr)


def constants(jaxpr: Any) -> Sequence[Any]:
    return getattr(jaxpr, "consts", ())


def raised(value: Any) -> Any:
    array = jnp.asarray(value)
    return array.astype(jnp.float64) if jnp.issubdtype(array.dtype, jnp.floating) else array


def evaluate_jaxpr(jaxpr: Any, consts: Sequence[Any], arguments: list[Any], evaluate: Evaluate) -> list[Any]:
    """One jaxpr, equation by equation; calls are entered, loops and branches rebuilt around their bodies."""
    environment: dict[Any, Any] = {}

    def read(atom: Any) -> Any:
        return raised(atom.val) if hasattr(atom, "val") else environment[atom]

    environment.update(zip(jaxpr.constvars, [raised(each) for each in consts], strict=True))
    environment.update(zip(jaxpr.invars, arguments, strict=True))
    for equation in jaxpr.eqns:
        inputs = [read(each) for each in equation.invars]
        outputs = _apply(equation, inputs, evaluate)
        environment.update(zip(equation.outvars, outputs, strict=True))
    return [read(each) for each in jaxpr.outvars]


def _apply(equation: Any, inputs: list[Any], evaluate: Evaluate) -> list[Any]:
    name, params = equation.primitive.name, dict(equation.params)
    if name in CALLS:
        return evaluate_jaxpr(*called(params), inputs, evaluate)
    if name in ("scan", "while", "cond"):
        return {"scan": _scan, "while": _while, "cond": _cond}[name](params, inputs, evaluate)
    if name in ("pallas_call", "core_map", "mpmd_map", "ffi_call", "pure_callback", "io_callback", "shard_map"):
        raise CaptureError(
            f"the baseline holds {name!r}, which cannot be lifted to float64",
            stage="oracle",
            where=f"primitive {name}",
            expected="ordinary JAX operations, or an oracle of your own",
            next_command="state oracle=... in the audit: host NumPy in the arithmetic dtype",
        )
    return evaluate(equation, inputs, params)


def called(params: dict[str, Any]) -> tuple[Any, Sequence[Any]]:
    """The open jaxpr that a call enters, and its constants."""
    inner = next(params[key] for key in _SUB if key in params)
    return open_jaxpr(inner), constants(inner)


def _inner(closed: Any, evaluate: Evaluate) -> Callable[[list[Any]], list[Any]]:
    return lambda arguments: evaluate_jaxpr(open_jaxpr(closed), constants(closed), arguments, evaluate)


def _scan(params: dict[str, Any], inputs: list[Any], evaluate: Evaluate) -> list[Any]:
    n_consts, n_carry = _scan_counts(params)
    consts, carry, streams = inputs[:n_consts], inputs[n_consts : n_consts + n_carry], inputs[n_consts + n_carry :]
    body = _inner(params["jaxpr"], evaluate)

    def step(state: Any, slices: Any) -> tuple[list[Any], list[Any]]:
        outputs = body([*consts, *state, *slices])
        return outputs[:n_carry], outputs[n_carry:]

    last, stacked = lax.scan(step, carry, streams, length=params["length"], reverse=params["reverse"])
    return [*last, *stacked]


def _scan_counts(params: dict[str, Any]) -> tuple[int, int]:
    """How many operands of a scan are constants, and how many are carried. From jax 0.11 on they come as trees."""
    if "num_consts" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()
    return len(consts), len(carry)


def _while(params: dict[str, Any], inputs: list[Any], evaluate: Evaluate) -> list[Any]:
    n_cond, n_body = params["cond_nconsts"], params["body_nconsts"]
    cond_consts, body_consts, carry = inputs[:n_cond], inputs[n_cond : n_cond + n_body], inputs[n_cond + n_body :]
    condition, body = _inner(params["cond_jaxpr"], evaluate), _inner(params["body_jaxpr"], evaluate)
    return list(
        lax.while_loop(
            lambda state: condition([*cond_consts, *state])[0],
            lambda state: body([*body_consts, *state]),
            carry,
        )
    )


def _cond(params: dict[str, Any], inputs: list[Any], evaluate: Evaluate) -> list[Any]:
    branches = [_inner(each, evaluate) for each in params["branches"]]
    index, *rest = inputs
    return list(lax.switch(index, [lambda *xs, run=each: run(list(xs)) for each in branches], *rest))


def _bind(equation: Any, inputs: list[Any], params: dict[str, Any]) -> list[Any]:
    result = equation.primitive.bind(*inputs, **params)
    return list(result) if equation.primitive.multiple_results else [result]


def bind_lifted(equation: Any, inputs: list[Any], params: dict[str, Any]) -> list[Any]:
    name = equation.primitive.name
    if name == "reduce_precision":
        return [inputs[0]]
    if name == "bitcast_convert_type":  # bits mean what they meant before lifting
        stored = [each.astype(atom.aval.dtype) for each, atom in zip(inputs, equation.invars, strict=True)]
        return [raised(each) for each in _bind(equation, stored, params)]
    for key in ("new_dtype", "dtype", "preferred_element_type"):
        if params.get(key) is not None and jnp.issubdtype(params[key], jnp.floating):
            params[key] = np.dtype("float64")
    return _bind(equation, inputs, params)
