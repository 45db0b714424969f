"""Which region each instruction of a compiled step belongs to: by its opcode, then by its scope, then by its neighbours.

The scope alone is wrong: an all-to-all that the partitioner made bears the label of what it serves, and on jax 0.12 a
dot of the CPU has none at all. What was found by neighbours is inferred, and is listed by name.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from kernel_audit.records import UNMAPPED
from kernel_audit.records.profile import COMMUNICATION, RESHARDING, STAGING
from kernel_audit.target.hlo import Computation, Instruction, Module, parse_module

COLLECTIVES = frozenset(
    (
        "all-reduce",
        "all-gather",
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "ragged-all-to-all",
        "reduce-scatter",
    )
)
CONTAINERS = frozenset(("while", "call", "conditional"))  # what is inside is in the trace by itself
_ASYNC = re.compile(r"-(start|done|update)$")
_SCOPE = re.compile(r"region\.([A-Za-z0-9][\w-]*)")
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_COMMENT = re.compile(r"/\*.*?\*/")
# The last part of an op_name where the author asked for the collective, and not the partitioner.
_ASKED = re.compile(
    r"(?:^|/)(psum|pmax|pmin|pmean|all_gather|all_to_all|ppermute|pbroadcast|psum_scatter|reduce_scatter|pgather)\w*$"
)
_THROUGH = frozenset(("get-tuple-element", "tuple", "bitcast"))
_ARITHMETIC = frozenset(("dot", "convolution", "custom-call"))  # does not become a neighbour's data movement
_MOVING = frozenset((COMMUNICATION, RESHARDING, STAGING))
_FARTHEST = 12  # instructions away
_COPIES = {"host-to-device": STAGING, "device-to-host": STAGING}


@dataclass(frozen=True)
class Place:
    """An instruction's region, and by which of records.MEANS it was found."""

    region: str
    by: str
    opcode: str = ""


class Attribution:
    """The regions of one compiled step, from its text (`Compiled.as_text()`). Raises ValueError for text that is no module."""

    def __init__(self, text: str) -> None:
        # Long tuple types carry comments such as /*index=5*/.
        self._module: Module = parse_module(_COMMENT.sub("", text))
        self._home: dict[str, Computation] = {}
        self._caller: dict[str, Instruction] = {}
        for computation in self._module.computations.values():
            for each in computation.instructions:
                self._home.setdefault(each.name, computation)
                for called in _called(each):
                    self._caller.setdefault(called, each)
        self._users: dict[str, dict[str, list[Instruction]]] = {}
        self._places: dict[str, Place] = {}

    def knows(self, name: str) -> bool:
        """Whether the text has an instruction of this name."""
        return name in self._home

    def opcode(self, name: str) -> str:
        """The opcode of an instruction; empty for an unknown one."""
        return self._home[name].by_name[name].opcode if name in self._home else ""

    def collective(self, name: str) -> bool:
        """Whether an instruction is a collective, or the end of one that was started before."""
        base = self.opcode(name)
        return not base.endswith("-start") and _ASYNC.sub("", base) in COLLECTIVES

    def users(self, name: str) -> set[str]:
        """The instructions that need an instruction's result, seen through those that only pass it on."""
        if name not in self._home:
            return set()
        computation = self._home[name]
        users = self._users.setdefault(computation.name, _users_of(computation))
        found: set[str] = set()
        waiting = [name]
        while waiting:
            for each in users.get(waiting.pop(), []):
                if each.name not in found:
                    found.add(each.name)
                    if each.opcode in _THROUGH:
                        waiting.append(each.name)
        return found

    def inside(self, name: str) -> set[str]:
        """Names of the instructions in the computations that an instruction calls, at any depth."""
        found: set[str] = set()
        waiting = [self._home[name].by_name[name]] if name in self._home else []
        while waiting:
            for called in _called(waiting.pop()):
                computation = self._module.computations.get(called)
                for each in computation.instructions if computation else []:
                    if each.name not in found:
                        found.add(each.name)
                        waiting.append(each)
        return found

    def place(self, name: str, opcode: str = "") -> Place:
        """Where an operation of the trace belongs; `opcode` is what the trace says of one that the text does not have."""
        if name not in self._places:
            self._places[name] = self._found(name, opcode)
        return self._places[name]

    def _found(self, name: str, opcode: str) -> Place:
        if name not in self._home:
            region = _COPIES.get(opcode)
            return Place(region, "opcode", opcode) if region else Place(UNMAPPED, UNMAPPED, opcode)
        computation = self._home[name]
        instruction = computation.by_name[name]
        base = _ASYNC.sub("", instruction.opcode)
        if base == "async":
            base = self._wrapped(instruction)
        if base in COLLECTIVES:
            return Place(_collective_region(instruction), "opcode", instruction.opcode)
        if region := self._scope(instruction):
            return Place(region, "scope", instruction.opcode)
        if region := self._near(computation, instruction):
            return Place(region, "neighbours", instruction.opcode)
        return Place(UNMAPPED, UNMAPPED, instruction.opcode)

    def _wrapped(self, instruction: Instruction) -> str:
        """The opcode that an `async-start` wraps."""
        computation = self._module.computations.get(instruction.called("calls"))
        return computation.root.opcode if computation and computation.root else ""

    def _scope(self, instruction: Instruction) -> str:
        """The innermost region of its own scope; for a fusion or a call without one, the commonest of what it holds."""
        if found := _SCOPE.findall(_op_name(instruction)):
            return found[-1]
        counted: Counter[str] = Counter()
        for called in _called(instruction):
            computation = self._module.computations.get(called)
            for each in computation.instructions if computation else []:
                if scopes := _SCOPE.findall(_op_name(each)):
                    counted[scopes[-1]] += 1
        return counted.most_common(1)[0][0] if counted else ""

    def _near(self, computation: Computation, instruction: Instruction) -> str:
        """The region of the nearest users, then producers; then that of what calls its computation."""
        users = self._users.setdefault(computation.name, _users_of(computation))
        for forwards in (True, False):
            seen = {instruction.name}
            ring = [instruction]
            for _ in range(_FARTHEST):
                ring = [
                    each for one in ring for each in _beside(computation, users, one, forwards) if each.name not in seen
                ]
                seen |= {each.name for each in ring}
                for each in ring:
                    base = _ASYNC.sub("", each.opcode)
                    if base not in COLLECTIVES and (region := self._scope(each)):
                        if instruction.opcode in _ARITHMETIC and region in _MOVING:
                            continue
                        return region
        caller = self._caller.get(computation.name)
        if caller is None or caller.name == instruction.name:
            return ""
        place = self.place(caller.name)
        return "" if place.by == UNMAPPED else place.region


def _beside(
    computation: Computation, users: dict[str, list[Instruction]], instruction: Instruction, forwards: bool
) -> list[Instruction]:
    if forwards:
        return users.get(instruction.name, [])
    found = [computation.by_name.get(each) for each in instruction.operands]
    return [each for each in found if each is not None]


def _users_of(computation: Computation) -> dict[str, list[Instruction]]:
    users: dict[str, list[Instruction]] = {}
    for each in computation.instructions:
        for name in each.operands:
            users.setdefault(name, []).append(each)
    return users


def _called(instruction: Instruction) -> list[str]:
    found = [instruction.called(key) for key in ("calls", "body", "condition", "to_apply")]
    branches = re.search(r"branch_computations=\{([^}]*)\}", instruction.attributes)
    if branches:
        found += [each.strip().lstrip("%") for each in branches.group(1).split(",")]
    return [each for each in found if each]


def _op_name(instruction: Instruction) -> str:
    found = _OP_NAME.search(instruction.attributes)
    return found.group(1) if found else ""


def _collective_region(instruction: Instruction) -> str:
    """A collective that its author asked for is communication, or the region that he put it in; one of the partitioner's is
    resharding, whatever label it bears."""
    name = _op_name(instruction)
    if 'is_spmd_generated="true"' in instruction.attributes or not _ASKED.search(name):
        return RESHARDING
    found = [each for each in _SCOPE.findall(name) if each in (COMMUNICATION, RESHARDING)]
    return found[-1] if found else COMMUNICATION
