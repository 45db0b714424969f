"""Compiled HLO text, read into computations and instructions. Plain text in, plain data out."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

_BITS = {
    "pred": 8,
    "s4": 4,
    "u4": 4,
    "s2": 2,
    "u2": 2,
    "s8": 8,
    "u8": 8,
    "s16": 16,
    "u16": 16,
    "s32": 32,
    "u32": 32,
    "s64": 64,
    "u64": 64,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
    "c64": 64,
    "c128": 128,
    "f4e2m1fn": 4,
    "f8e8m0fnu": 8,
}
_ARRAY = re.compile(r"(?P<dtype>[a-z][a-z0-9]*)\[(?P<dims>[\d,<=]*)\](?:\{(?P<layout>[^}]*)\})?")
_SPACE = re.compile(r"S\((\d+)\)")
_COMPUTATION = re.compile(r"^(ENTRY\s+)?%?(?P<name>[^\s(]+)\s+\(.*\)\s*->\s*.*\{\s*$")
_INSTRUCTION = re.compile(r"^\s+(?P<root>ROOT\s+)?%?(?P<name>[^\s=]+)\s+=\s+(?P<rest>.*)$")
_OPCODE = re.compile(r"\s(?P<opcode>[a-z][\w-]*)\(")
_NAME = re.compile(r"%([\w.\-<>]+)")
MAIN_MEMORY = 0


@dataclass(frozen=True)
class Array:
    """One array of an instruction's result: its bytes (without tile padding) and the memory space that it lies in."""

    dtype: str
    dims: tuple[int, ...]
    space: int

    @property
    def size_bytes(self) -> int:
        bits = 8 if self.dtype.startswith("f8") else _BITS.get(self.dtype, 0)
        return math.ceil(math.prod(self.dims) * bits / 8)


@dataclass(frozen=True)
class Instruction:
    """`results` are the arrays of its result, `operands` names of instructions, `attributes` the text after the operands."""

    name: str
    opcode: str
    results: tuple[Array, ...]
    operands: tuple[str, ...]
    attributes: str
    root: bool
    arguments: str = ""

    def called(self, key: str) -> str:
        """The computation that attribute `key` names; empty where there is none."""
        found = re.search(rf"\b{key}=%?([\w.\-]+)", self.attributes)
        return found.group(1) if found else ""

    @property
    def call_target(self) -> str:
        found = re.search(r'custom_call_target="([^"]+)"', self.attributes)
        return found.group(1) if found else ""


@dataclass
class Computation:
    """Instructions in order, and by name."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    by_name: dict[str, Instruction] = field(default_factory=dict)

    @property
    def root(self) -> Instruction | None:
        return next((each for each in self.instructions if each.root), None)

    def users(self, name: str) -> list[Instruction]:
        return [each for each in self.instructions if name in each.operands]


@dataclass
class Module:
    """A compiled program: its computations by name, and which one is the entry."""

    computations: dict[str, Computation]
    entry: Computation


def parse_module(text: str) -> Module:
    """The module in HLO text, as `Compiled.as_text()` gives it. Raises ValueError where there is no entry computation."""
    computations: dict[str, Computation] = {}
    entry: Computation | None = None
    current: Computation | None = None
    for line in text.splitlines():
        opening = _COMPUTATION.match(line)
        if opening:
            current = computations.setdefault(opening["name"], Computation(opening["name"]))
            if opening.group(1):
                entry = current
            continue
        found = _INSTRUCTION.match(line) if current is not None else None
        if found and current is not None:
            made = _instruction(found)
            if made is not None:
                current.instructions.append(made)
                current.by_name[made.name] = made
        elif line.startswith("}"):
            current = None
    if entry is None:
        raise ValueError("HLO text without an entry computation")
    return Module(computations, entry)


def _instruction(found: re.Match[str]) -> Instruction | None:
    rest = found["rest"]
    type_end = _end_of_type(rest)
    opcode = _OPCODE.match(rest, type_end)
    if opcode is None:
        return None
    closing = _closing(rest, opcode.end() - 1)
    arguments = rest[opcode.end() : closing]
    return Instruction(
        name=found["name"],
        opcode=opcode["opcode"],
        results=arrays_in(rest[:type_end]),
        operands=tuple(_NAME.findall(arguments)),
        attributes=rest[closing + 1 :],
        root=bool(found["root"]),
        arguments=arguments,
    )


def arrays_in(text: str) -> tuple[Array, ...]:
    """Every array of a type: one, or those of a tuple."""
    made = []
    for each in _ARRAY.finditer(text):
        dims = tuple(int(size.lstrip("<=")) for size in each["dims"].split(",") if size)
        space = _SPACE.search(each["layout"] or "")
        made.append(Array(each["dtype"], dims, int(space.group(1)) if space else MAIN_MEMORY))
    return tuple(made)


def _end_of_type(rest: str) -> int:
    if rest.startswith("("):
        return _closing(rest, 0) + 1
    layout = rest.find("{")
    space = rest.find(" ")
    return rest.find("}", layout) + 1 if 0 <= layout < space else space


def _closing(text: str, opening: int) -> int:
    """Where the parenthesis opened at `opening` is closed; brackets inside strings do not count."""
    depth = 0
    quoted = False
    for position in range(opening, len(text)):
        char = text[position]
        if char == '"' and text[position - 1] != "\\":
            quoted = not quoted
        elif not quoted and char == "(":
            depth += 1
        elif not quoted and char == ")":
            depth -= 1
            if depth == 0:
                return position
    return len(text)


def trip_count(module: Module, loop: Instruction) -> int | None:
    """How often a `while` runs: as XLA states it, or by a counter from a constant in steps of one to a constant."""
    stated = re.search(r'known_trip_count"?:\{"?n"?:"?(\d+)', loop.attributes)
    if stated:
        return int(stated.group(1))
    condition = module.computations.get(loop.called("condition"))
    test = condition.root if condition else None
    if condition is None or test is None or test.opcode != "compare" or "direction=LT" not in test.attributes:
        return None
    counter, limit = (condition.by_name.get(each) for each in test.operands)
    index = re.search(r"index=(\d+)", counter.attributes) if counter is not None else None
    last = _constant(condition, limit)
    if index is None or last is None:
        return None
    return _trips_to(module, loop, int(index.group(1)), last)


def _trips_to(module: Module, loop: Instruction, index: int, last: int) -> int | None:
    """The trips of a loop whose counter is entry `index` of its state: it must start at a constant and grow by one."""
    body = module.computations.get(loop.called("body"))
    home = next((each for each in module.computations.values() if loop.name in each.by_name), None)
    if body is None or body.root is None or home is None or index >= len(body.root.operands):
        return None
    step = body.by_name.get(body.root.operands[index])
    if step is None or step.opcode != "add" or 1 not in [_constant(body, body.by_name.get(n)) for n in step.operands]:
        return None
    state = home.by_name.get(loop.operands[0])
    start = home.by_name.get(state.operands[index]) if state is not None and index < len(state.operands) else None
    first = _constant(home, start)
    return last - first if first is not None else None


def _constant(computation: Computation, instruction: Instruction | None) -> int | None:
    while instruction is not None and instruction.opcode in ("copy", "bitcast", "copy-done", "copy-start"):
        instruction = computation.by_name.get(instruction.operands[0])
    if instruction is None or instruction.opcode != "constant" or not re.fullmatch(r"-?\d+", instruction.arguments):
        return None
    return int(instruction.arguments)
