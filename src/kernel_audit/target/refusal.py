"""A compiler's refusal, reduced to what the author can act on: operation, source line, limit and use."""

from __future__ import annotations

import re

from kernel_audit.program.kernel_bodies import operation_source
from kernel_audit.records import CompilerReason

_MOST_CHARACTERS = 400
_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_RAN_OUT = re.compile(r"Ran out of memory in memory space (\w+)\. Used ([\d.]+)([KMG]?) of ([\d.]+)([KMG]?)")
_ALLOCATION = re.compile(r"Allocation \(size=(\d+)\) would exceed memory \(size=(\d+)\).*?space=(\w+)", re.DOTALL)
_SHARED = re.compile(
    r"[Ss]hared memory.*?(\d+)\D+?(?:limit|max\w*|available|up to)\D*?(\d+)|smem_bytes[= ](\d+) > (\d+)"
)
_WINDOW = re.compile(r"Tag: ([^\n]+)")
_INVOLVED = re.compile(r'The MLIR operation involved:\s*(?:%\S+ = )?"([\w.]+)"(.*?)(?:\n|$)')
_PRIMITIVE = re.compile(r"Unimplemented primitive in Pallas \w+ lowering(?: for [\w.]+)?: (\w+)")
_LEGALIZE = re.compile(r"failed to legalize operation '([\w.]+)'")
_PLACE = re.compile(r"\b([\w.-]+\.py):(\d+)")
_NOISE = (
    "Please report a bug",
    "... additional diagnostics",
    "For simplicity, JAX has removed",
    "Please file an issue",
)


def reason_of(kind: str, message: str, *, stage: str, lowered: str = "", source: str = "") -> CompilerReason:
    """The refusal that an exception of type `kind` states. `lowered` is the StableHLO in which its operation is looked for;
    `source` the place to name where nothing better is known."""
    memory, used, limit = _memory(message)
    operation = _operation(message)
    place = _PLACE.search(message)
    found = f"{place.group(1)}:{place.group(2)}" if place else ""
    if not found and lowered and (involved := _INVOLVED.search(message)):
        result = involved.group(2).rpartition("->")[2].strip()
        found = operation_source(lowered, involved.group(1), result)
    return CompilerReason(
        stage=stage,
        kind=kind,
        operation=operation,
        source=found or source,
        memory=memory,
        limit_bytes=limit,
        used_bytes=used,
        text=_shortened(message),
    )


def _memory(message: str) -> tuple[str, int | None, int | None]:
    """(memory, bytes used, bytes that there are)."""
    if found := _RAN_OUT.search(message):
        memory, used, used_unit, limit, limit_unit = found.groups()
        return memory, int(float(used) * _UNITS[used_unit]), int(float(limit) * _UNITS[limit_unit])
    if found := _ALLOCATION.search(message):
        return found.group(3), int(found.group(1)), int(found.group(2))
    if found := _SHARED.search(message):
        used, limit = [int(each) for each in found.groups() if each]
        return "shared", used, limit
    return "", None, None


def _operation(message: str) -> str:
    for pattern in (_PRIMITIVE, _LEGALIZE, _INVOLVED):
        if found := pattern.search(message):
            return found.group(1)
    if found := _WINDOW.search(message):
        return found.group(1).split(". The u8")[0]
    return ""


def _shortened(message: str) -> str:
    """The lines that say something, up to a few hundred characters."""
    kept = [line.strip() for line in message.splitlines() if line.strip() and not line.strip().startswith(_NOISE)]
    text = " ".join(kept).partition(" The MLIR operation involved:")[
        0
    ]  # `operation` and `source` say it for the author
    text = text.partition(" Largest program allocations")[0]
    text = re.sub(r'"body":"[A-Za-z0-9+/=]+"', '"body":...', text)
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 3] + "..."
