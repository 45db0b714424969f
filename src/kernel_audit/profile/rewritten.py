"""A traced step evaluated again with some of its equations replaced: without its collectives, or cut at its regions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from kernel_audit.program import compat
from kernel_audit.program.rewrite import inner_jaxprs

SHARD_MAP = "shard_map"
INLINED = frozenset(("jit", "pjit", "closed_call", "core_call"))
_SCOPE = re.compile(r"region\.([A-Za-z0-9][\w-]*)")
_REDUCED = frozenset(("psum", "psum_invariant", "psum2", "pmax", "pmin", "ppermute", "pbroadcast"))
COLLECTIVES = _REDUCED | {"all_gather", "all_gather_invariant", "all_to_all", "reduce_scatter", "psum_scatter"}
_BOOKKEEPING = frozenset(("pvary", "pcast"))  # says how values vary over devices; nothing to do
Rule = Callable[[Any, list[Any]], list[Any] | None]


def scope_of(equation: Any) -> str:
    """The innermost region that an equation was traced in; empty where there is none."""
    found = _SCOPE.findall(str(equation.source_info.name_stack))
    return found[-1] if found else ""


def inner(equation: Any) -> Any:
    """The one jaxpr of a call or a shard_map, open."""
    return compat.open_jaxpr(next(each for _, _, each in inner_jaxprs(equation.params)))


def constants_of(equation: Any) -> Sequence[Any]:
    """The constants attached to that jaxpr."""
    return compat.constants(next(each for _, _, each in inner_jaxprs(equation.params)))


def bound(equation: Any, values: Sequence[Any]) -> list[Any]:
    """The equation carried out on values, its bookkeeping of varying axes left out (its twins are not checked for it)."""
    name = equation.primitive.name
    if name in _BOOKKEEPING:
        return list(values)
    if name in ("psum_invariant", "psum2"):
        axes = equation.params["axes"]
        return [jax.lax.psum(each, axes) for each in values]
    with equation.ctx.manager:
        found = equation.primitive.bind(*values, **equation.primitive.get_bind_params(equation.params))
    return list(found) if equation.primitive.multiple_results else [found]


def over_devices(equation: Any, function: Callable[..., Any], in_specs: Any, out_specs: Any) -> Callable[..., Any]:
    """`function` as a body in the place of a shard_map equation's."""
    return jax.shard_map(
        function, mesh=equation.params["mesh"], in_specs=in_specs, out_specs=out_specs, check_vma=False
    )


def evaluated(jaxpr: Any, values: Sequence[Any], rule: Rule, constants: Sequence[Any] = ()) -> list[Any]:
    """A jaxpr on values; where `rule(equation, values)` gives results, they are taken instead. Shard maps and plain calls are
    entered, loops and branches are not."""
    opened = compat.open_jaxpr(jaxpr)
    known: dict[Any, Any] = dict(zip(opened.constvars, constants or compat.constants(jaxpr), strict=True))
    known.update(zip(opened.invars, values, strict=True))

    def read(each: Any) -> Any:
        return each.val if isinstance(each, compat.Literal) else known[each]

    for equation in opened.eqns:
        given = [read(each) for each in equation.invars]
        name = equation.primitive.name
        found = rule(equation, given)
        if found is None and name == SHARD_MAP:
            found = _entered(equation, given, rule)
        elif found is None and name in INLINED:
            found = evaluated(inner(equation), given, rule, constants_of(equation))
        known.update(zip(equation.outvars, found if found is not None else bound(equation, given), strict=True))
    return [read(each) for each in opened.outvars]


def _entered(equation: Any, given: list[Any], rule: Rule) -> list[Any]:
    def body(*shards: Any) -> tuple[Any, ...]:
        return tuple(evaluated(inner(equation), shards, rule, constants_of(equation)))

    parameters = equation.params
    return list(over_devices(equation, body, tuple(parameters["in_specs"]), tuple(parameters["out_specs"]))(*given))


def without_collectives(function: Callable[..., Any], specs: Sequence[Any]) -> tuple[Callable[..., Any], int]:
    """(the step with each collective that its author asked for replaced by local work of the same shape, how many those are).

    A sum or a permutation passes its operand on; a gather repeats the device's own part; a scatter takes a part. Collectives in
    loops stay, and those that the partitioner makes are not in the traced program.
    """
    jaxpr, tree = _traced(function, specs)
    count = 0

    def rule(equation: Any, values: list[Any]) -> list[Any] | None:
        nonlocal count
        if equation.primitive.name not in COLLECTIVES:
            return None
        count += 1
        return [_local_instead(equation, value, out.aval) for value, out in zip(values, equation.outvars, strict=True)]

    def twin(*operands: Any) -> Any:
        return jax.tree.unflatten(tree, evaluated(jaxpr, operands, rule))

    jax.eval_shape(twin, *specs)
    return twin, count


def _local_instead(equation: Any, value: Any, wanted: Any) -> Any:
    name = equation.primitive.name
    if name in _REDUCED:
        return value
    if name.startswith("all_gather"):
        dimension = equation.params["all_gather_dimension"]
        size = equation.params["axis_size"]
        if not equation.params["tiled"]:
            value = jnp.expand_dims(value, dimension)
        return jnp.concatenate([value] * size, axis=dimension)
    if value.size == wanted.size:  # all_to_all
        return jnp.reshape(value, wanted.shape)
    return jax.lax.slice(value, [0] * len(wanted.shape), wanted.shape)


def without_local(local: Callable[..., Any]) -> Callable[..., Any]:
    """In the candidate's place: results of the right shapes, made from one element of each operand. Nothing downstream can be
    folded away, and nothing is computed."""

    def stub(*shards: Any) -> Any:
        seed = sum((each.ravel()[0].astype(jnp.float32) for each in shards if each.size), jnp.float32(0))
        shapes = jax.eval_shape(local, *[jax.ShapeDtypeStruct(each.shape, each.dtype) for each in shards])
        return jax.tree.map(lambda each: jnp.full(each.shape, seed).astype(each.dtype), shapes)

    return stub


def _traced(function: Callable[..., Any], specs: Sequence[Any]) -> tuple[Any, Any]:
    jaxpr, shapes = jax.make_jaxpr(function, return_shape=True)(*specs)
    return jaxpr, jax.tree.structure(shapes)


traced = _traced
