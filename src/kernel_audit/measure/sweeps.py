"""Sizes of a sweep as they are asked for on the command line: `n=2**14:2**22` (doubling), `d=128,512,2048`. No JAX."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from kernel_audit.contract import Audit
from kernel_audit.errors import AuditError, near

MOST_POINTS = 64
_NUMBER = re.compile(r"(\d+)(?:\*\*(\d+))?")


def sweep_sizes(audit: Audit, asked: Sequence[str]) -> list[dict[str, int]]:
    """The declared sizes with the swept dimensions in their place, the last one changing first; [] where nothing is asked.

    Raises AuditError for a dimension that the audit does not have, a size that its contract does not admit, and no sweep.
    """
    swept = dict(_one(audit, text) for text in asked)
    if not swept:
        return []
    points = [
        {**audit.declared_dims, **dict(zip(swept, sizes, strict=True))} for sizes in itertools.product(*swept.values())
    ]
    if len(points) > MOST_POINTS:
        raise _fault("too many sizes", ", ".join(asked), f"at most {MOST_POINTS}", str(len(points)))
    for each in points:
        if not audit.admits(each):
            told = ", ".join(f"{name}={size}" for name, size in each.items())
            raise _fault("a size that the contract does not admit", ", ".join(asked), "sizes that `vary` admits", told)
    return points


def swept_names(asked: Sequence[str]) -> list[str]:
    """The dimensions that are swept, in order."""
    return [text.partition("=")[0].strip() for text in asked]


def lines_of(points: Iterable[dict[str, int]], name: str) -> list[dict[str, int]]:
    """The fixed sizes of each line along which only `name` changes, in order."""
    found: list[dict[str, int]] = []
    for each in points:
        rest = {key: size for key, size in each.items() if key != name}
        if rest not in found:
            found.append(rest)
    return found


def _one(audit: Audit, text: str) -> tuple[str, list[int]]:
    name, equals, values = text.partition("=")
    name = name.strip()
    known = [each.name for each in audit.dimensions]
    if not equals or name not in known:
        raise _fault("a sweep over no dimension of the audit", text, "one of " + ", ".join(known), near(name, known))
    first, colon, last = values.partition(":")
    sizes = (
        _doubled(_number(first, text), _number(last, text))
        if colon
        else [_number(each, text) for each in values.split(",")]
    )
    if len(set(sizes)) != len(sizes) or not sizes:
        raise _fault("a sweep without sizes, or with one twice", text, "NAME=FIRST:LAST or NAME=A,B,C", values)
    return name, sorted(sizes)


def _doubled(first: int, last: int) -> list[int]:
    sizes = []
    while first and first <= last:
        sizes.append(first)
        first *= 2
    return sizes


def _number(text: str, whole: str) -> int:
    match = _NUMBER.fullmatch(text.strip())
    if match is None or len(text) > 20:
        raise _fault("a size that is no number", whole, "a whole number such as 512 or 2**14", repr(text))
    base, exponent = int(match.group(1)), match.group(2)
    value = base if exponent is None else base ** min(int(exponent), 64)
    if not 0 < value < 1 << 48:
        raise _fault("a size out of range", whole, "1 to 2**48", text)
    return value


def _fault(what: str, where: str, expected: str, got: str) -> AuditError:
    return AuditError(what, stage="sweep", where=f"--sweep {where}", expected=expected, got=got)
