"""Bytes that each kernel of a traced program moves: asked of the traced level in one place."""

from __future__ import annotations

from typing import NamedTuple

from kernel_audit.inspect import inspect_program
from kernel_audit.program import Program


class KernelTraffic(NamedTuple):
    """Bytes of one run of a kernel, and how many programs it has; None where it cannot be told.

    `moved` counts what exists of a block at the edges: tails move no more than there is. `claimed` is its author's estimate.
    """

    moved: int | None
    claimed: int | None
    programs: int | None


def traffic_by_path(program: Program) -> tuple[dict[str, KernelTraffic], str]:
    """path -> traffic for each kernel, and why there is none where the traced level could not read the program."""
    try:
        inspected = inspect_program(program)
    except Exception as error:  # compiling goes on: what a compiler says does not rest on it
        return {}, f"bytes of kernels cannot be told: reading the traced program raised {type(error).__name__}: {error}"
    return {each.path: KernelTraffic(each.bytes.clipped, each.bytes.claimed, each.programs) for each in inspected}, ""
