"""Bytes that each kernel of a traced program moves: asked of the traced level in one place."""

from __future__ import annotations

from typing import Any

from kernel_audit.program import Program


def bytes_by_path(program: Program) -> dict[str, dict[str, int | None]]:
    """path -> {"moved", "claimed", "programs"} for each kernel; a kernel that the traced level cannot tell of is left out.

    "moved" counts what exists of a block at the edges: tails move no more than there is.
    """
    try:
        from kernel_audit.inspect import inspect_program
    except ImportError:
        return {}
    found: dict[str, dict[str, int | None]] = {}
    for each in inspect_program(program):
        told: Any = each.bytes
        found[each.path] = {"moved": told.clipped, "claimed": told.claimed, "programs": each.programs}
    return found
