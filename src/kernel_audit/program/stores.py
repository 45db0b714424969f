"""What a kernel body stores to, and what it allocates, read from its jaxpr."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kernel_audit.program import compat
from kernel_audit.program.rewrite import inner_jaxprs

# A plain store, an accumulating store, and `pl.store` with a mask: the reference is the first operand of each.
_STORES = frozenset({"swap", "addupdate", "masked_swap"})


def stored_references(body: Any, references: Sequence[Any]) -> set[int]:
    """Positions in `references` (variables of `body`) that the body stores to: directly, in a branch or loop, by DMA.

    A store under `pl.when` counts although it may never run. A copy that stages a block in VMEM is no store to the
    operand; a DMA whose destination is the operand is.
    """
    positions = {variable: position for position, variable in enumerate(references)}
    return {positions[variable] for variable in _stored_variables(body, set(positions))}


def _stored_variables(body: Any, watched: set[Any]) -> set[Any]:
    stored: set[Any] = set()
    for equation in compat.open_jaxpr(body).eqns:
        name = equation.primitive.name
        if name in _STORES:
            stored |= _among([equation.invars[0]], watched)
        elif name == "dma_start":
            stored |= _among([compat.dma_destination(equation)], watched)
        else:
            for outer, inner, jaxpr in passed_on(equation):
                named = {b: a for a, b in zip(outer, inner, strict=False) if _among([a], watched)}
                stored |= {named[each] for each in _stored_variables(jaxpr, set(named))} if named else set()
    return stored


def _among(variables: Sequence[Any], watched: set[Any]) -> set[Any]:
    return {each for each in variables if not isinstance(each, compat.Literal) and each in watched}


def passed_on(equation: Any) -> Iterator[tuple[Sequence[Any], Sequence[Any], Any]]:
    """(operands of the equation, variables that stand for them inside, inner jaxpr) for each inner jaxpr."""
    name = equation.primitive.name
    for parameter, _, jaxpr in inner_jaxprs(equation.params):
        inner = compat.open_jaxpr(jaxpr)
        if name == "run_scoped":  # its own variables are the allocations
            yield equation.invars, inner.constvars, jaxpr
        elif name == "cond":
            yield equation.invars[1:], inner.invars, jaxpr
        elif name == "while":
            start = equation.params["cond_nconsts"] if parameter == "body_jaxpr" else 0
            yield equation.invars[start:], inner.invars, jaxpr
        elif len(inner.invars) == len(equation.invars):
            yield equation.invars, inner.invars, jaxpr


def allocated_buffers(body: Any) -> list[list[int]]:
    """Shapes of the buffers that `run_scoped` allocates in the body, at every depth; semaphores are not buffers."""
    shapes: list[list[int]] = []
    for equation in compat.open_jaxpr(body).eqns:
        for _, _, jaxpr in inner_jaxprs(equation.params):
            if equation.primitive.name == "run_scoped":
                shapes += buffer_shapes(compat.open_jaxpr(jaxpr).invars)
            shapes += allocated_buffers(jaxpr)
    return shapes


def buffer_shapes(variables: Sequence[Any]) -> list[list[int]]:
    """Shapes of the references that hold data and not semaphores."""
    avals = [each.aval for each in variables if hasattr(each.aval, "inner_aval")]
    return [[int(size) for size in aval.shape] for aval in avals if not compat.is_semaphore(aval)]
