"""Axes of the grid along which a kernel does the same again: programs that share a block then store the same values."""

from __future__ import annotations

from kernel_audit.inspect.body import equations_within
from kernel_audit.inspect.equation import KernelEquation
from kernel_audit.inspect.index_map import driving_axes
from kernel_audit.inspect.updates import uses_of

_KEEP = ("dma_", "semaphore_", "prng_")  # primitives whose effect outlives a program


def repeating_axes(kernel: KernelEquation) -> frozenset[int]:
    """Axes on which nothing that a program stores can depend: the body does not ask for its index, no operand that it
    reads is cut by it, and a program reads nothing that another one left."""
    names = {each.primitive.name for each in equations_within(kernel.body)}
    uses = uses_of(kernel)
    if any(name.startswith(_KEEP) for name in names) or any(
        role not in ("input", "prefetched") for role, _ in uses.carried
    ):
        return frozenset()
    asked = {each.params["axis"] for each in equations_within(kernel.body) if each.primitive.name == "program_id"}
    for mapping in kernel.inputs:
        if not mapping.piped:
            return frozenset()
        if ("input", mapping.position) in uses.touched:
            asked |= driving_axes(mapping, len(kernel.grid))
    return frozenset(range(len(kernel.grid))) - asked


def ordered_axes(kernel: KernelEquation) -> tuple[str, ...]:
    """The meaning of each axis for what programs share: one that only repeats counts as any other."""
    if not any("parallel" in each for each in kernel.semantics):
        return kernel.semantics
    same = repeating_axes(kernel)
    return tuple("arbitrary" if axis in same else each for axis, each in enumerate(kernel.semantics))
