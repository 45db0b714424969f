"""Finds the kernel equations of a program and describes each as a record."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernel_audit.program import compat
from kernel_audit.program.canonical import canonical_digest
from kernel_audit.program.rewrite import inner_jaxprs
from kernel_audit.program.stores import allocated_buffers, buffer_shapes, stored_references
from kernel_audit.records import Kernel

DYNAMIC = -1  # a grid size that is known only when the kernel runs


def find_kernels(jaxpr: Any) -> list[Kernel]:
    """Every kernel equation at every depth, in order; `path` names the equations around it and its position."""
    return [_described(path, equation, around) for path, equation, around in kernel_equations(jaxpr, "")]


def kernel_equations(jaxpr: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """(path, kernel equation, open jaxpr around it) at every depth, in order."""
    around = compat.open_jaxpr(jaxpr)
    for position, equation in enumerate(around.eqns):
        name = equation.primitive.name
        if name in compat.KERNEL_PRIMITIVES:
            yield f"{path}{name}#{position}", equation, around
            continue
        label = equation.params.get("name")
        here = f"{path}{name}:{label}/" if isinstance(label, str) else f"{path}{name}/"
        for _, _, inner in inner_jaxprs(equation.params):
            yield from kernel_equations(inner, here)


def sealed_calls(jaxpr: Any, path: str = "") -> list[str]:
    """Paths of calls of programs that were exported before: bytes, in which no kernel can be seen, nor how it is run."""
    found = []
    for position, equation in enumerate(compat.open_jaxpr(jaxpr).eqns):
        name = equation.primitive.name
        if name == "call_exported":
            found.append(f"{path}{name}#{position}")
        for _, _, inner in inner_jaxprs(equation.params):
            found += sealed_calls(inner, f"{path}{name}/")
    return found


def _described(path: str, equation: Any, around: Any) -> Kernel:
    details = {"pallas_call": _pallas_call, "mpmd_map": _mpmd_map, "core_map": _core_map}
    grid, blocks, allocations, written = details[equation.primitive.name](equation, around)
    return Kernel(
        path=path,
        name=_name(equation),
        primitive=equation.primitive.name,
        digest=canonical_digest(dict(equation.params)),
        grid=grid,
        blocks=blocks,
        allocations=allocations,
        authored_interpret=_interpret_text(equation.params["interpret"]),
        written_inputs=sorted(written),
    )


def _name(equation: Any) -> str:
    if equation.params.get("name"):
        return str(equation.params["name"])
    bodies = [jaxpr for _, _, jaxpr in inner_jaxprs(equation.params)]
    debug_info = getattr(compat.open_jaxpr(bodies[0]), "debug_info", None) if bodies else None
    return getattr(debug_info, "func_name", None) or "kernel"


def _interpret_text(interpret: Any) -> str:
    return str(interpret) if isinstance(interpret, bool) else type(interpret).__name__


_Details = tuple[list[int], list[list[int]], list[list[int]], set[int]]


def _pallas_call(equation: Any, _around: Any) -> _Details:
    """`written_inputs` counts array operands only: a prefetched scalar is a copy in SMEM, for the kernel to use."""
    mapping = equation.params["grid_mapping"]
    body = compat.open_jaxpr(equation.params["jaxpr"])
    grid = [size if isinstance(size, int) else DYNAMIC for size in mapping.grid]
    blocks = [[_block_size(size) for size in each.block_shape] for each in mapping.block_mappings]
    prefetched = mapping.num_index_operands
    inputs = body.invars[prefetched : prefetched + mapping.num_inputs]
    scratch = body.invars[prefetched + mapping.num_inputs + mapping.num_outputs :]
    aliased = {operand - prefetched for operand, _ in equation.params["input_output_aliases"]}
    written = stored_references(body, inputs) - aliased
    return grid, blocks, buffer_shapes(scratch) + allocated_buffers(body), written


def _block_size(size: Any) -> int:
    """A dimension of a block: a number of elements, or 1 for a dimension that is squeezed out."""
    return int(size) if isinstance(size, int) else int(getattr(size, "block_size", 1))


def _mpmd_map(equation: Any, _around: Any) -> _Details:
    bodies = [compat.open_jaxpr(each) for each in equation.params["jaxprs"]]
    operands = len(equation.invars)
    aliased = set(dict(equation.params["input_output_aliases"]))
    grid = [int(size) for mesh in equation.params["meshes"] for size in mesh.shape.values()]
    avals = [each.aval for each in (*equation.invars, *equation.outvars)]
    allocations: list[list[int]] = []
    written: set[int] = set()
    for body in bodies:
        allocations += buffer_shapes(body.invars[len(avals) :]) + allocated_buffers(body)
        written |= stored_references(body, body.invars[:operands])
    return grid, [list(aval.shape) for aval in avals], allocations, written - aliased


def _core_map(equation: Any, around: Any) -> _Details:
    """Its operands are references made before it: a result starts as `empty` or is read back afterwards."""
    body = compat.open_jaxpr(equation.params["jaxpr"])
    results = _results_of_core_map(equation, around)
    written = {i for i in stored_references(body, body.constvars) if equation.invars[i] not in results}
    grid = [int(size) for size in equation.params["mesh"].shape.values()]
    return grid, [list(each.aval.shape) for each in equation.invars], allocated_buffers(body), written


def _results_of_core_map(equation: Any, around: Any) -> set[Any]:
    empty: set[Any] = set()
    results: set[Any] = set()
    passed = False
    for each in around.eqns:
        operands = [operand for operand in each.invars if not isinstance(operand, compat.Literal)]
        if each is equation:
            passed = True
        elif each.primitive.name == "empty" or (each.primitive.name == "new_ref" and set(operands) & empty):
            empty |= set(each.outvars)
        elif passed:
            results |= set(operands)
    return results | empty
