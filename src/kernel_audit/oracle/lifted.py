"""An oracle for free: the baseline's own jaxpr with every float in float64, and with noise for a budget.

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

_CALLS = (
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
# Primitives that round their result; the others copy, compare or select.
_ROUNDING = frozenset(
    [
        *(
            "add",
            "sub",
            "mul",
            "div",
            "exp",
            "exp2",
            "log",
            "log1p",
            "expm1",
            "rsqrt",
            "sqrt",
            "cbrt",
            "tanh",
            "logistic",
        ),
        *("integer_pow", "pow", "erf", "erfc", "sin", "cos", "tan", "add_any", "reduce_sum", "reduce_prod", "cumsum"),
        *("cumprod", "dot_general"),
    ]
)


# Primitives that move elements and keep their values.
_LAYOUT = ("reshape", "squeeze", "slice", "transpose", "broadcast_in_dim", "rev")


def lifted(jaxpr: Any) -> Callable[..., list[jax.Array]]:
    """A function of the jaxpr's inputs that evaluates it with every float in float64.

    Raises CaptureError, while it is traced, naming a primitive that cannot be lifted (a kernel, a foreign call).
    """

    def program(*arguments: Any) -> list[jax.Array]:
        return _evaluate(_open(jaxpr), _consts(jaxpr), [_up(each) for each in arguments], _bind_lifted)

    return program


def noisy(jaxpr: Any) -> Callable[..., list[jax.Array]]:
    """A function (seed, *inputs) that evaluates the jaxpr in float64 as `lifted` does, with a relative error of at most
    half an ulp of the dtype as written drawn after each operation that rounds (for a sum of k terms sqrt(k) of them,
    after Higham and Mary, SISC 2019, 41(5)). Casts that only store a result are left out: a budget adds those itself."""

    def program(seed: jax.Array, *arguments: Any) -> list[jax.Array]:
        counter = iter(range(1 << 30))
        last = _last_casts(_open(jaxpr))

        def evaluate(equation: Any, inputs: list[Any], params: dict[str, Any]) -> list[Any]:
            outputs = _bind_lifted(equation, inputs, params)
            if not _rounds(equation) or id(equation) in last:
                return outputs
            return [
                _perturbed(equation, atom.aval.dtype, each, _noise(each.shape, seed, next(counter)))
                for atom, each in zip(equation.outvars, outputs, strict=True)
            ]

        return _evaluate(_open(jaxpr), _consts(jaxpr), [_up(each) for each in arguments], evaluate)

    return program


def _rounds(equation: Any) -> bool:
    if equation.primitive.name != "convert_element_type":
        return equation.primitive.name in _ROUNDING
    given, made = equation.invars[0].aval.dtype, equation.outvars[0].aval.dtype
    return jnp.promote_types(given, made) != made  # a wider dtype holds every value of a narrower one


def _last_casts(jaxpr: Any) -> set[int]:
    """Identities of the casts whose value is a result, calls and changes of shape looked through."""
    makers = {variable: equation for equation in jaxpr.eqns for variable in equation.outvars}
    found: set[int] = set()
    for result in jaxpr.outvars:
        maker = None if hasattr(result, "val") else makers.get(result)
        while maker is not None and maker.primitive.name in _LAYOUT and not hasattr(maker.invars[0], "val"):
            maker = makers.get(maker.invars[0])
        if maker is None:
            continue
        if maker.primitive.name == "convert_element_type":
            found.add(id(maker))
        elif maker.primitive.name in _CALLS:
            found |= _last_casts(_called(maker.params)[0])
    return found


def _open(jaxpr: Any) -> Any:
    return getattr(jaxpr, "jaxpr", jaxpr)


def _consts(jaxpr: Any) -> Sequence[Any]:
    return getattr(jaxpr, "consts", ())


def _up(value: Any) -> Any:
    array = jnp.asarray(value)
    return array.astype(jnp.float64) if jnp.issubdtype(array.dtype, jnp.floating) else array


def _evaluate(jaxpr: Any, consts: Sequence[Any], arguments: list[Any], evaluate: Evaluate) -> list[Any]:
    """One jaxpr, equation by equation; calls are entered, loops and branches rebuilt around their bodies."""
    environment: dict[Any, Any] = {}

    def read(atom: Any) -> Any:
        return _up(atom.val) if hasattr(atom, "val") else environment[atom]

    environment.update(zip(jaxpr.constvars, [_up(each) for each in consts], strict=True))
    environment.update(zip(jaxpr.invars, arguments, strict=True))
    for equation in jaxpr.eqns:
        inputs = [read(each) for each in equation.invars]
        outputs = _apply(equation, inputs, evaluate)
        environment.update(zip(equation.outvars, outputs, strict=True))
    return [read(each) for each in jaxpr.outvars]


def _apply(equation: Any, inputs: list[Any], evaluate: Evaluate) -> list[Any]:
    name, params = equation.primitive.name, dict(equation.params)
    if name in _CALLS:
        return _evaluate(*_called(params), inputs, evaluate)
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


def _called(params: dict[str, Any]) -> tuple[Any, Sequence[Any]]:
    """The open jaxpr that a call enters, and its constants."""
    inner = next(params[key] for key in _SUB if key in params)
    return _open(inner), _consts(inner)


def _inner(closed: Any, evaluate: Evaluate) -> Callable[[list[Any]], list[Any]]:
    return lambda arguments: _evaluate(_open(closed), _consts(closed), arguments, evaluate)


def _scan(params: dict[str, Any], inputs: list[Any], evaluate: Evaluate) -> list[Any]:
    n_consts, n_carry = params["num_consts"], params["num_carry"]
    consts, carry, streams = inputs[:n_consts], inputs[n_consts : n_consts + n_carry], inputs[n_consts + n_carry :]
    body = _inner(params["jaxpr"], evaluate)

    def step(state: Any, slices: Any) -> tuple[list[Any], list[Any]]:
        outputs = body([*consts, *state, *slices])
        return outputs[:n_carry], outputs[n_carry:]

    last, stacked = lax.scan(step, carry, streams, length=params["length"], reverse=params["reverse"])
    return [*last, *stacked]


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


def _bind_lifted(equation: Any, inputs: list[Any], params: dict[str, Any]) -> list[Any]:
    name = equation.primitive.name
    if name == "reduce_precision":
        return [inputs[0]]
    if name == "bitcast_convert_type":  # bits mean what they meant before lifting
        stored = [each.astype(atom.aval.dtype) for each, atom in zip(inputs, equation.invars, strict=True)]
        return [_up(each) for each in _bind(equation, stored, params)]
    for key in ("new_dtype", "dtype", "preferred_element_type"):
        if params.get(key) is not None and jnp.issubdtype(params[key], jnp.floating):
            params[key] = np.dtype("float64")
    return _bind(equation, inputs, params)


def _noise(shape: tuple[int, ...], seed: jax.Array, operation: int) -> jax.Array:
    """Uniform float64 in [-1, 1): a hash of position, operation and seed, which compiles far faster than jax.random."""
    position = lax.iota(jnp.uint32, int(np.prod(shape))).reshape(shape)
    salt = (operation * 0x85EBCA6B) % 2**32
    mixed = position * np.uint32(0x9E3779B1) + np.uint32(salt) + jnp.asarray(seed, jnp.uint32) * np.uint32(0xC2B2AE35)
    for factor in (0x7FEB352D, 0x846CA68B):
        mixed = (mixed ^ (mixed >> 16)) * np.uint32(factor)
    mixed = mixed ^ (mixed >> 16)
    return mixed.astype(jnp.float64) * 2.0**-31 - 1.0


def _perturbed(equation: Any, dtype: Any, value: Any, noise: jax.Array) -> Any:
    if not jnp.issubdtype(dtype, jnp.floating):
        return value
    terms = _terms(equation)
    unit = float(jnp.finfo(dtype).eps) / 2
    if terms > 1:  # sums accumulate in float32 at least, and are rounded to their dtype at the end
        accumulated = float(jnp.finfo(jnp.promote_types(dtype, jnp.float32)).eps) / 2 * np.sqrt(terms)
        unit = max(unit, accumulated) if dtype == jnp.promote_types(dtype, jnp.float32) else unit + accumulated
    return value * (1.0 + unit * noise)


def _terms(equation: Any) -> int:
    name, shape = equation.primitive.name, equation.invars[0].aval.shape
    if name in ("reduce_sum", "reduce_prod"):
        return int(np.prod([shape[axis] for axis in equation.params["axes"]])) or 1
    if name == "dot_general":
        return int(np.prod([shape[axis] for axis in equation.params["dimension_numbers"][0][0]])) or 1
    if name in ("cumsum", "cumprod"):
        return int(shape[equation.params["axis"]])
    return 1
