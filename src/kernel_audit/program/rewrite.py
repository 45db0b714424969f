"""Sets `interpret` in every kernel equation of a traced program, at every depth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernel_audit.program import compat


def inner_jaxprs(parameters: dict[str, Any]) -> Iterator[tuple[str, int | None, Any]]:
    """(parameter, position or None, jaxpr) for every jaxpr among an equation's parameters.

    Higher-order primitives need no case of their own: whichever parameter holds a jaxpr, alone or in a sequence, is
    found.
    """
    for name, value in parameters.items():
        if compat.is_jaxpr(value):
            yield name, None, value
        elif isinstance(value, (tuple, list)):
            for position, each in enumerate(value):
                if compat.is_jaxpr(each):
                    yield name, position, each


def set_interpret(jaxpr: Any, interpret: Any, target: str) -> Any:
    """`jaxpr` with `interpret` in all its kernels; `target` ("tpu" or "cuda") picks platform-dependent branches.

    Effects are kept true at every level: the TPU interpreter runs by ordered host callbacks, and a scan, while or cond
    that does not show the effect is lowered without the token that orders them. Custom derivative rules are opaque and
    keep the author's mode, so a captured program is never differentiated: capture `jax.grad(f)`.
    """
    equations = [_equation(each, interpret, target) for each in compat.open_jaxpr(jaxpr).eqns]
    effects = set(compat.open_jaxpr(jaxpr).effects) - compat.HOST_EFFECTS
    for each in equations:
        effects |= set(each.effects) & compat.HOST_EFFECTS
    return compat.rebuilt(jaxpr, equations, effects)


def _equation(equation: Any, interpret: Any, target: str) -> Any:
    parameters = dict(equation.params)
    name = equation.primitive.name
    if name in compat.KERNEL_PRIMITIVES:
        parameters["interpret"] = interpret
        return _replaced(equation, parameters, compat.interpret_effects(interpret))
    if name in ("platform_index", "cond"):
        _take_targets_branch(parameters, target)
    inner = list(inner_jaxprs(parameters))
    if not inner:  # a plain io_callback of the candidate keeps its own effect
        return equation.replace(params=parameters)
    host_effects: set[Any] = set()
    for parameter, position, jaxpr in inner:
        rewritten = set_interpret(jaxpr, interpret, target)
        host_effects |= set(compat.open_jaxpr(rewritten).effects) & compat.HOST_EFFECTS
        parameters[parameter] = _with_entry(parameters[parameter], position, rewritten)
    return _replaced(equation, parameters, host_effects)


def _replaced(equation: Any, parameters: dict[str, Any], host_effects: set[Any]) -> Any:
    effects = (set(equation.effects) - compat.HOST_EFFECTS) | host_effects
    return equation.replace(params=parameters, effects=type(equation.effects)(effects))


def _with_entry(value: Any, position: int | None, entry: Any) -> Any:
    if position is None:
        return entry
    entries = list(value)
    entries[position] = entry
    return entries if isinstance(value, list) else tuple(entries)


def _take_targets_branch(parameters: dict[str, Any], target: str) -> None:
    """For cpu, `lax.platform_dependent` gets the target's branch: its own `cpu=` branch need not hold the kernel.

    The choice stands twice, in `platform_index` and in the `cond` that binds it again when lowered.
    """
    for name in ("platforms", "branches_platforms"):
        if parameters.get(name):
            parameters[name] = tuple(_platforms(each, target) for each in parameters[name])


def _platforms(platforms: tuple[str, ...] | None, target: str) -> tuple[str, ...] | None:
    if platforms is None:  # the default branch
        return None
    kept = tuple(each for each in platforms if each != "cpu")
    return (*kept, "cpu") if target in kept else kept
