"""What a compiled program consists of: fusions, copies, collectives, calls, and what an opaque call could not be fused with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kernel_audit.records import Around, Collective
from kernel_audit.target.hlo import Computation, Instruction
from kernel_audit.target.traffic import Movement

_COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
)
_COPIES = frozenset({"copy", "copy-start", "transpose", "reshape", "pad", "slice", "concatenate"})
_SEEN_THROUGH = frozenset({"bitcast", "get-tuple-element", "copy-done", "tuple", "opt-barrier"})
_GROUPS = re.compile(r"replica_groups=(\{\{.*?\}\}|\[[^\]]*\](?:<=\[[^\]]*\])?(?:T\([\d,]*\))?|\{[^}]*\})")


@dataclass(frozen=True)
class Summary:
    """Counts of one compiled program. `copy_bytes` are moved by copies and relayouts, None where it cannot be told."""

    fusions: int
    copies: int
    copy_bytes: int | None
    collectives: list[Collective]
    around: list[Around]


def summary_of(moved: list[Movement], kernels: dict[str, str]) -> Summary:
    """`kernels` maps the instructions that are kernel calls to the kernels' names."""
    copies = [each for each in moved if each.instruction.opcode in _COPIES and (each.size_bytes or 0) > 0]
    told = [each.size_bytes * each.trips for each in copies if each.size_bytes is not None and each.trips is not None]
    return Summary(
        fusions=sum(each.instruction.opcode == "fusion" for each in moved),
        copies=len(copies),
        copy_bytes=sum(told) if len(told) == len(copies) else None,
        collectives=[_collective(each) for each in moved if _kind(each.instruction)],
        around=_around(moved, kernels),
    )


def _kind(instruction: Instruction) -> str:
    opcode = instruction.opcode.removesuffix("-start")
    return opcode if opcode in _COLLECTIVES else ""


def _collective(each: Movement) -> Collective:
    groups = _GROUPS.search(each.instruction.attributes)
    sizes = []
    for name in each.instruction.operands:
        operand = each.computation.by_name.get(name)
        sizes += [array.size_bytes for array in operand.results] if operand is not None else []
    return Collective(
        kind=_kind(each.instruction),
        payload_bytes=sum(sizes),
        replica_groups=groups.group(1) if groups else "",
        trips=each.trips,
    )


def _around(moved: list[Movement], kernels: dict[str, str]) -> list[Around]:
    """What stands right before and after a kernel: work that an ordinary program would have fused with it."""
    sizes = {each.instruction.name: each for each in moved}
    found: dict[tuple[str, str, str], Around] = {}
    for call in [each for each in moved if each.instruction.name in kernels]:
        computation = call.computation
        before = _reached(call.instruction.operands, lambda name, c=computation: _operands(c, name), sizes)
        after = _reached(
            [user.name for user in computation.users(call.instruction.name)],
            lambda name, c=computation: [user.name for user in c.users(name)],
            sizes,
        )
        for side, names in (("before", before), ("after", after)):
            for name in names - set(kernels):
                other = sizes[name]
                if other.size_bytes != 0:
                    kernel = kernels[call.instruction.name]
                    found[name, side, kernel] = Around(
                        operation=name,
                        opcode=other.instruction.opcode,
                        side=side,
                        kernel=kernel,
                        moved_bytes=other.size_bytes,
                    )
    return list(found.values())


def _operands(computation: Computation, name: str) -> list[str]:
    instruction = computation.by_name.get(name)
    return list(instruction.operands) if instruction is not None and instruction.opcode in _SEEN_THROUGH else []


def _reached(names: Iterable[str], onwards: Callable[[str], list[str]], sizes: dict[str, Movement]) -> set[str]:
    """The instructions that do something, reached through those that only pass values on."""
    found: set[str] = set()
    waiting = list(names)
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in sizes:
            found.add(name)
        else:
            waiting += onwards(name)
    return found
