"""Counts the copies that the TPU interpreter makes: the second way, besides reading the program, to know its bytes.

Private names of JAX's interpreter, the same from 0.9.2 to 0.12 but for a token that comes first from 0.10 on.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax._src.pallas.mosaic.interpret import interpret_pallas_call as interpreter

from kernel_audit.program.capture import Program
from kernel_audit.program.executable import run_simulated
from kernel_audit.program.modes import TpuInterpreter

_MAIN_MEMORY = ("any", "hbm")
_BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4}


@dataclass
class CountedCopies:
    """Copies between main memory and fast memory in one run, all kernels of the program together, in whole blocks."""

    blocks_in: int = 0
    blocks_out: int = 0
    by_hand: int = 0
    bytes: int = 0


def count_copies(program: Program, arrays: Sequence[Any]) -> CountedCopies:
    """Runs `program` once in the TPU interpreter, every axis in its order, and counts what it copies.

    Raises InterpreterRaised where the interpreter refuses what a kernel does, CaptureError for other operands.
    """
    with _counting() as counted:
        run_simulated(program.fresh_executable(TpuInterpreter(detect_races=False)), arrays)
    return counted


@contextlib.contextmanager
def _counting() -> Iterator[CountedCopies]:
    counted = CountedCopies()
    replaced = {
        "get": _counted_get(interpreter.get, counted),
        "store": _counted_store(interpreter.store, counted),
        "_get_randomized_grid_coordinates": _in_order,
    }
    before = {name: getattr(interpreter, name) for name in replaced}
    read = interpreter.DMA.execute_read
    for name, function in replaced.items():
        setattr(interpreter, name, function)
    interpreter.DMA.execute_read = _counted_read(read, counted)
    try:
        yield counted
    finally:
        interpreter.DMA.execute_read = read
        for name, function in before.items():
            setattr(interpreter, name, function)


def _in_order(grid: Any, *_: Any) -> tuple[Any, ...]:
    """No axis is shuffled: bytes are those of programs in the order of the grid."""
    return (jnp.array((), dtype=jnp.int32),) * len(grid)


def _counted_get(original: Any, counted: CountedCopies) -> Any:
    @functools.wraps(original)
    def get(*arguments: Any, **given: Any) -> Any:
        result = original(*arguments, **given)
        if given.get("input_name") is not None:
            counted.blocks_in += 1
            counted.bytes += _bytes(result[-1] if isinstance(result, tuple) else result)
        return result

    get.__wrapped__ = getattr(original, "__wrapped__", original)  # DMAs of newer versions call what is inside
    return get


def _counted_store(original: Any, counted: CountedCopies) -> Any:
    @functools.wraps(original)
    def store(*arguments: Any, **given: Any) -> Any:
        if given.get("output_name") is not None:
            counted.blocks_out += 1
            token = hasattr(original, "__wrapped__")
            counted.bytes += _bytes(arguments[6 if token else 5])
        return original(*arguments, **given)

    store.__wrapped__ = getattr(original, "__wrapped__", original)
    return store


def _counted_read(original: Any, counted: CountedCopies) -> Any:
    @functools.wraps(original)
    def execute_read(self: Any) -> None:
        before = self.state
        original(self)
        if self.state == before or self.data is None:
            return
        for space in (self.src_memory_space, self.dst_memory_space):
            if _name(space) in _MAIN_MEMORY:
                counted.by_hand += 1
                counted.bytes += _bytes(self.data)

    return execute_read


def _name(space: int) -> str:
    found = interpreter.TPU_MEMORY_SPACE_NAMES[int(space)]
    return str(getattr(found, "value", found)).lower()


def _bytes(array: Any) -> int:
    data = np.asarray(array)
    return -(-data.size * _BITS.get(data.dtype.name, 8 * data.dtype.itemsize) // 8)
