"""The contract probe: which configurations around the declared ones a compiler takes. Nobody publishes this; it is asked.

From the first declared configuration one thing is changed at a time: a size to half of it, to 25/32 of it (no multiple of any
tile), and to twice it; a number of slots by one; a switch to the other side. Each is asked in every dtype. One block more is
larger than the target's fast memory: asked in the first dtype alone, since a compiler takes its time over it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from kernel_audit.records import CompiledRecord, FamilyMember

_UNEVEN = (25, 32)
_LEAST_SIZE = 8  # smaller numbers count slots or stages
_LANES = 128
Member = tuple[str, dict[str, Any]]  # what was changed, and the configuration


def family_around(declared: list[dict[str, Any]], sweeps: Mapping[str, list[Any]]) -> list[Member]:
    """The configurations to ask, each once, with what was changed of the first declared one."""
    found: dict[str, Member] = {}
    for changed, configuration in _members(declared, sweeps):
        found.setdefault(repr(sorted(configuration.items(), key=lambda each: each[0])), (changed, configuration))
    return list(found.values())


def too_large(declared: list[dict[str, Any]], memory_bytes: int) -> list[Member]:
    """The first declared configuration with its block doubled along its first dimension until four buffers of 32-bit elements
    (two slots in, two out) fill the memory. A number from 8 on is taken for rows of at least 128 elements. None where no
    parameter is such a size, or the memory is not known."""
    for key, value in (declared[0] if declared and memory_bytes else {}).items():
        is_number = isinstance(value, int) and not isinstance(value, bool) and value >= _LEAST_SIZE
        sizes = [value] if is_number else value
        if not isinstance(sizes, list) or not sizes or not all(isinstance(each, int) for each in sizes):
            continue
        size, rest = sizes[0], _LANES if is_number else math.prod(sizes[1:])
        while 4 * 4 * size * rest < memory_bytes:
            size *= 2
        block = size if is_number else [size, *sizes[1:]]
        return [(f"{key}={_text(block)}", {**declared[0], key: block})]
    return []


def _members(declared: list[dict[str, Any]], sweeps: Mapping[str, list[Any]]) -> Iterator[Member]:
    first = dict(declared[0]) if declared else {}
    yield "first declared", first
    for key, value in first.items():
        for other in _around(value):
            yield f"{key}={_text(other)}", {**first, key: other}
    for key, choices in sweeps.items():
        for choice in choices:
            yield f"{key}={_text(choice)}", {**first, key: choice}


def _around(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from _sizes(value) if value >= _LEAST_SIZE else (each for each in (value - 1, value + 1) if each > 0)
    elif isinstance(value, list) and value and all(isinstance(each, int) for each in value):
        for index, size in enumerate(value):
            for other in _sizes(size):
                yield [*value[:index], other, *value[index + 1 :]]


def _sizes(size: int) -> list[int]:
    half, uneven = size // 2, size * _UNEVEN[0] // _UNEVEN[1]
    return [each for each in (half, uneven, 2 * size) if each > 0]


def _text(value: Any) -> str:
    return str(tuple(value)) if isinstance(value, list) else str(value)


def members_of(records: list[CompiledRecord], changes: list[str], builder: str) -> list[FamilyMember]:
    """The family as records; `changes` is parallel to the configurations, each with the same number of dtypes."""
    each_change = len(records) // max(len(changes), 1)
    return [
        FamilyMember(
            target=record.target,
            builder=builder,
            dtype=record.dtype,
            configuration=record.configuration,
            changed=changes[index // each_change] if each_change else "",
            accepted=record.accepted,
            reason=record.reason,
        )
        for index, record in enumerate(records)
    ]
