"""Noise for a derived budget: the baseline in float64 with an error drawn after each of its operations that rounds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from kernel_audit.oracle.lifted import CALLS, bind_lifted, called, constants, evaluate_jaxpr, open_jaxpr, raised

# Primitives that move elements and keep their values.
_LAYOUT = ("reshape", "squeeze", "slice", "transpose", "broadcast_in_dim", "rev", "copy", "copy_p")
# Those that compare, select or move: what they give is exact. All others round.
_EXACT = frozenset(
    [
        *_LAYOUT,
        *("abs", "neg", "sign", "max", "min", "clamp", "floor", "ceil", "round", "select_n", "stop_gradient", "iota"),
        *("concatenate", "pad", "dynamic_slice", "dynamic_update_slice", "gather", "scatter", "expand_dims", "split"),
        *("reduce_max", "reduce_min", "cummax", "cummin", "sort", "top_k", "tile", "nextafter", "reduce_precision"),
        *("bitcast_convert_type", "optimization_barrier", "device_put"),
    ]
)
# Sums of products or of single terms: on squared operands they give the sum of the squared terms.
_SUMS = ("reduce_sum", "cumsum", "dot_general")


def noisy(jaxpr: Any) -> Callable[..., list[jax.Array]]:
    """A function (seed, *inputs) that evaluates the jaxpr in float64 as `lifted` does, with an error of at most half an
    ulp of the dtype as written drawn after each operation that rounds. Casts that only store a result are left out: a
    budget adds those itself.
    """

    def program(seed: jax.Array, *arguments: Any) -> list[jax.Array]:
        number = count()
        last = _last_casts(open_jaxpr(jaxpr))

        def evaluate(equation: Any, inputs: list[Any], params: dict[str, Any]) -> list[Any]:
            outputs = bind_lifted(equation, inputs, params)
            if not _rounds(equation) or id(equation) in last:
                return outputs
            errors = _largest_errors(equation, inputs, params, outputs)
            return [
                each if error is None else each + error * _draw(each.shape, seed, next(number))
                for each, error in zip(outputs, errors, strict=True)
            ]

        return evaluate_jaxpr(open_jaxpr(jaxpr), constants(jaxpr), [raised(each) for each in arguments], evaluate)

    return program


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
        elif maker.primitive.name in CALLS:
            found |= _last_casts(called(maker.params)[0])
    return found


def _rounds(equation: Any) -> bool:
    if equation.primitive.name != "convert_element_type":
        return equation.primitive.name not in _EXACT
    given, made = equation.invars[0].aval.dtype, equation.outvars[0].aval.dtype
    return jnp.promote_types(given, made) != made  # a wider dtype holds every value of a narrower one


def _largest_errors(
    equation: Any, inputs: list[Any], params: dict[str, Any], outputs: list[jax.Array]
) -> list[jax.Array | None]:
    """For each output the largest error of its rounding, elementwise; None for what is no float.

    A sum of k terms is rounded k times on its way, each time by half an ulp of what was summed so far: sqrt(k) half ulps
    (after Higham and Mary, SISC 2019, 41(5)) of the sum or, where terms cancel, of the root of their summed squares.
    """
    dtypes = [atom.aval.dtype for atom in equation.outvars]
    errors: list[jax.Array | None] = [
        _half_ulp(dtype) * jnp.abs(each) if jnp.issubdtype(dtype, jnp.floating) else None
        for dtype, each in zip(dtypes, outputs, strict=True)
    ]
    if equation.primitive.name in _SUMS and errors[0] is not None and (terms := _terms(equation)) > 1:
        # Sums accumulate in float32 at least, whatever the dtype of their operands.
        wide = jnp.promote_types(dtypes[0], jnp.float32)
        squares = bind_lifted(equation, [each * each for each in inputs], params)[0]
        summed = _half_ulp(wide) * np.sqrt(terms) * jnp.maximum(jnp.abs(outputs[0]), jnp.sqrt(squares))
        errors[0] = summed if wide == dtypes[0] else errors[0] + summed
    return errors


def _half_ulp(dtype: Any) -> float:
    return float(jnp.finfo(dtype).eps) / 2


def _terms(equation: Any) -> int:
    shape, params = equation.invars[0].aval.shape, equation.params
    if equation.primitive.name == "cumsum":
        return int(shape[params["axis"]])
    axes = params["axes"] if equation.primitive.name == "reduce_sum" else params["dimension_numbers"][0][0]
    return int(np.prod([shape[axis] for axis in axes]))


def _draw(shape: tuple[int, ...], seed: jax.Array, operation: int) -> jax.Array:
    """Uniform float64 in [-1, 1): a hash of position, operation and seed, which compiles far faster than jax.random."""
    position = lax.iota(jnp.uint32, int(np.prod(shape))).reshape(shape)
    salt = (operation * 0x85EBCA6B) % 2**32
    mixed = position * np.uint32(0x9E3779B1) + np.uint32(salt) + jnp.asarray(seed, jnp.uint32) * np.uint32(0xC2B2AE35)
    for factor in (0x7FEB352D, 0x846CA68B):
        mixed = (mixed ^ (mixed >> 16)) * np.uint32(factor)
    mixed = mixed ^ (mixed >> 16)
    return mixed.astype(jnp.float64) * 2.0**-31 - 1.0
