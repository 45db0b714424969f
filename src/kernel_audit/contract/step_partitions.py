"""The partitions that a step is tried on: even and uneven counts, devices without examples, meshes of one and two axes."""

from __future__ import annotations

import math
from collections.abc import Iterable

from kernel_audit.records import StepPartition

MOST_DEVICES = 8
MOST_EXAMPLES = 1000  # values show at this size what they show at a larger one; a profile is another matter
PERMUTED = "permuted"
# Where a difference between steps shows first; the rest of the list is the same in other sizes.
QUICK = ("data=2/3+5", "data=2/4+4", "data=8/13", "data=2,model=4/13")


def partitions(examples: int, *, quick: bool = False) -> list[StepPartition]:
    """The list for a workload of so many examples, of which 1,000 at most are used; `quick`: those four that tell most."""
    examples = min(examples, MOST_EXAMPLES)
    found = list(_one_axis(examples))
    found += [
        _made({"data": 2, "model": 4}, balanced(13, 8)),
        _made({"data": 4, "model": 2}, filled(13, 8), note="filled"),
        _made({"data": 2, "model": 2}, balanced(5, 4)),
        _made({"data": 8}, balanced(13, 8), order=PERMUTED),
        _made({"data": 8}, balanced(examples, 8), order=PERMUTED),
    ]
    unique = {each.name: each for each in found}
    return [each for each in unique.values() if not quick or each.name in QUICK]


def _one_axis(examples: int) -> Iterable[StepPartition]:
    yield _made({"data": 1}, [8])
    yield _made({"data": 2}, balanced(3, 2))
    yield _made({"data": 2}, balanced(5, 2))
    yield _made({"data": 2}, [3, 5], note="3+5")
    yield _made({"data": 2}, [4, 4], note="4+4")
    for devices in (3, 4, 5, 6, 7):
        yield _made({"data": devices}, balanced(13, devices))
    for count in (5, 8, 13):
        yield _made({"data": 8}, balanced(count, 8))
    yield _made({"data": 8}, filled(13, 8), note="filled")
    yield _made({"data": 8}, [0, 0, 0, 0, 0, 13, 0, 0], note="one-device")
    yield _made({"data": 8}, balanced(examples, 8))


def balanced(examples: int, devices: int) -> list[int]:
    """Counts that differ by one at most, the larger ones first: 13 over 8 is 2 2 2 2 2 1 1 1."""
    least, more = divmod(examples, devices)
    return [least + (device < more) for device in range(devices)]


def filled(examples: int, devices: int) -> list[int]:
    """Counts as by padding at the end: full devices, one with what is left, then none: 13 over 8 is 2 2 2 2 2 2 1 0."""
    rows = math.ceil(examples / devices)
    return [min(max(examples - device * rows, 0), rows) for device in range(devices)]


def _made(mesh: dict[str, int], counts: list[int], *, order: str = "as drawn", note: str = "") -> StepPartition:
    axes = ",".join(f"{axis}={size}" for axis, size in mesh.items())
    parts = [f"{axes}/{note if '+' in note else sum(counts)}"]
    parts += [note] if note and "+" not in note else []
    parts += [order] if order != "as drawn" else []
    rows = max(counts)
    return StepPartition(
        name="-".join(parts),
        mesh=mesh,
        counts=counts,
        rows=rows,
        whole=all(each == rows for each in counts),
        order=order,
    )
