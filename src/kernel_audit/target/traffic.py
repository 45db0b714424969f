"""Bytes of main memory that a compiled program reads and writes, by its operands and results. A lower bound, not a time.

Each fusion, copy and call reads its operands in main memory once and writes its results there once; a slice reads what it
cuts out, an update in place writes what it puts in; a loop counts its trips. Arrays in on-chip memory (a memory space other
than 0) move nothing. What is not understood makes the sum None, "cannot tell", and never zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernel_audit.target.hlo import MAIN_MEMORY, Array, Computation, Instruction, Module, trip_count

_NOTHING = frozenset(
    {
        *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "partition-id", "replica-id"),
        *("copy-done", "slice-done", "iota", "opt-barrier", "add-dependency", "async-done", "domain"),
        *("all-reduce-done", "all-gather-done", "collective-permute-done", "reduce-scatter-done"),
    }
)
_SLICES = frozenset({"dynamic-slice", "slice", "gather"})
# Custom calls that stand for an address or a mark and move nothing.
_MARKS = frozenset({"AllocateBuffer", "AssumeGatherIndicesInBound", "Sharding", "LayoutConstraint"})
_LOOKED_THROUGH = frozenset({"bitcast", "reshape", "copy", "convert"})


@dataclass(frozen=True)
class Movement:
    """Bytes that one instruction moves in each of its trips; `size_bytes` None where it cannot be told."""

    instruction: Instruction
    computation: Computation
    trips: int | None
    size_bytes: int | None


def movements(module: Module, calls: Mapping[str, int | None]) -> Iterator[Movement]:
    """What every instruction of the program moves, loops entered. `calls`: bytes of opaque calls by instruction name."""
    yield from _of(module, module.entry, 1, calls)


def total_bytes(moved: list[Movement]) -> int | None:
    """The sum, None when any part of it cannot be told."""
    total = 0
    for each in moved:
        if each.size_bytes is None or each.trips is None:
            return None
        total += each.size_bytes * each.trips
    return total


def _of(
    module: Module, computation: Computation, trips: int | None, calls: Mapping[str, int | None]
) -> Iterator[Movement]:
    for each in computation.instructions:
        if each.opcode in _NOTHING:
            continue
        if each.opcode == "while":
            inside = trip_count(module, each)
            body = module.computations[each.called("body")]
            yield from _of(module, body, trips * inside if trips is not None and inside is not None else None, calls)
        elif each.opcode == "call" and each.called("to_apply") in module.computations:
            yield from _of(module, module.computations[each.called("to_apply")], trips, calls)
        elif each.opcode == "custom-call":
            yield Movement(each, computation, trips, _custom(each, computation, calls))
        else:
            yield Movement(each, computation, trips, _moved(module, computation, each))


def _custom(call: Instruction, computation: Computation, calls: Mapping[str, int | None]) -> int | None:
    if call.name in calls:
        return calls[call.name]
    return 0 if call.call_target in _MARKS else None


def _moved(module: Module, computation: Computation, each: Instruction) -> int | None:
    if each.opcode in ("conditional", "infeed", "outfeed", "send", "recv", "sort"):
        return None
    if each.opcode.endswith("-start") or each.opcode == "copy":
        return _transfer(computation, each)
    inner = module.computations.get(each.called("calls")) if each.opcode == "fusion" else None
    if each.opcode in _SLICES:
        read = sum(_in_main(array) for array in each.results) if _lies(computation, each.operands[0]) else 0
        return read + _written(each)
    if each.opcode == "dynamic-update-slice":
        return 2 * _size(computation, each.operands[1]) if _lies(computation, each.operands[0]) else 0
    reads = [_read(computation, inner, name, index) for index, name in enumerate(each.operands)]
    return sum(reads) + (_written_by_fusion(each, inner) if inner else _written(each))


def _transfer(computation: Computation, each: Instruction) -> int:
    """A copy between or inside memories, or the start of one; a collective reads its operands and writes its results."""
    read = sum(_size(computation, name) for name in each.operands)
    if each.opcode == "copy-start" or each.opcode == "copy":
        return read + _in_main(each.results[0])
    if each.opcode in ("slice-start", "async-start"):
        written = each.results[1] if len(each.results) > 1 else each.results[0]
        return _in_main(written) + (written.size_bytes if read else 0)
    return 2 * read


def _read(computation: Computation, inner: Computation | None, name: str, index: int) -> int:
    """What a fusion reads of one operand: what it slices out where that is all it does with it, else all of it."""
    whole = _size(computation, name)
    if inner is None or whole == 0:
        return whole
    parameter = next(
        (each for each in inner.instructions if each.opcode == "parameter" and each.arguments == str(index)), None
    )
    if parameter is None:
        return whole
    parts = _sliced(inner, parameter.name)
    return whole if parts is None else min(whole, parts)


def _sliced(inner: Computation, name: str) -> int | None:
    """Bytes that slices take out of a value, None when anything else uses it. The target of an update is not read."""
    total = 0
    for user in inner.users(name):
        if user.opcode in _SLICES and user.operands[0] == name:
            total += sum(array.size_bytes for array in user.results)
        elif user.opcode == "dynamic-update-slice" and user.operands[0] == name:
            continue
        elif user.opcode in _LOOKED_THROUGH:
            more = _sliced(inner, user.name)
            if more is None:
                return None
            total += more
        else:
            return None
    return total


def _written_by_fusion(each: Instruction, inner: Computation) -> int:
    """The results of a fusion in main memory; of a result that is an update in place, the update."""
    root = inner.root
    while root is not None and root.opcode in _LOOKED_THROUGH and root.operands:
        root = inner.by_name.get(root.operands[0])
    if root is not None and root.opcode == "dynamic-update-slice" and len(each.results) == 1:
        update = inner.by_name.get(root.operands[1])
        if update is not None:
            return min(_written(each), sum(array.size_bytes for array in update.results))
    return _written(each)


def _written(each: Instruction) -> int:
    return sum(_in_main(array) for array in each.results)


def _size(computation: Computation, name: str) -> int:
    operand = computation.by_name.get(name)
    return sum(_in_main(array) for array in operand.results) if operand is not None else 0


def _lies(computation: Computation, name: str) -> bool:
    return _size(computation, name) > 0


def _in_main(array: Array) -> int:
    return array.size_bytes if array.space == MAIN_MEMORY and array.dims else 0
