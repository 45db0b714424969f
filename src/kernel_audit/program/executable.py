"""A program that can be called: a list of arrays in, a list of arrays out, compiled once."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax

from kernel_audit.errors import CaptureError, EnvironmentFault
from kernel_audit.program import compat
from kernel_audit.program.raised import InterpreterRaised, is_interpreters


@dataclasses.dataclass(frozen=True)
class Simulated:
    """What one call in the TPU interpreter gave; `races` tells whether any of its kernels had a data race."""

    outputs: list[jax.Array]
    races: bool


class Executable:
    """Calls one jitted function, which keeps its compiled code: the first call compiles, later ones are cheap.

    Operands are one flat list of arrays in the order of the program's `operands`, each with exactly that shape and
    dtype. A `jax.Array` at a donated position cannot be used afterwards; NumPy arrays are copied.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        operands: Sequence[Any],
        *,
        donated: Sequence[int],
        surroundings: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
        shardings: Sequence[Any] | None = None,
        simulated: bool = False,
    ) -> None:
        self._jitted = jax.jit(function, donate_argnums=tuple(donated))
        self._operands = [(tuple(each.shape), each.dtype) for each in operands]
        self._surroundings = surroundings
        self._shardings = shardings
        self.simulated = simulated

    def __call__(self, arrays: Sequence[Any]) -> list[jax.Array]:
        """The results as a flat list. Raises CaptureError when an operand has another shape or dtype than captured."""
        self._require_operands(arrays)
        if self._shardings is not None:
            arrays = [jax.device_put(each, s) for each, s in zip(arrays, self._shardings, strict=True)]
        with self._surroundings(), advice_left_out():
            return list(self._jitted(*arrays))

    def _require_operands(self, arrays: Sequence[Any]) -> None:
        got = [(tuple(each.shape), each.dtype) for each in arrays]
        if got == self._operands:
            return
        raise CaptureError(
            "a program was called with other operands than it was captured for",
            stage="run",
            where="its operands",
            expected=", ".join(array_text(shape, dtype) for shape, dtype in self._operands),
            got=", ".join(array_text(shape, dtype) for shape, dtype in got),
        )


def run_simulated(executable: Executable, arrays: Sequence[Any]) -> Simulated:
    """One call in the TPU interpreter, waited for, with its race verdict (the same on every JAX version).

    Raises InterpreterRaised for what the interpreter refuses (an index out of bounds, a block revisited) and
    EnvironmentFault for an executable of another mode; after any exception the interpreter's global state was reset.
    Not thread-safe: the interpreter has one simulated memory for the whole process.
    """
    if not executable.simulated:
        raise EnvironmentFault(
            "run_simulated needs a program for the TPU interpreter",
            stage="run",
            where="its mode",
            expected="Program.executable(TpuInterpreter(...))",
        )
    with compat.recorded_races() as any_race:
        try:
            outputs = jax.block_until_ready(executable(arrays))
            jax.effects_barrier()
        except BaseException as error:
            compat.reset_interpreter()
            if is_interpreters(error):
                raise InterpreterRaised(error) from None
            raise
        return Simulated(outputs=outputs, races=any_race())


@contextlib.contextmanager
def advice_left_out() -> Iterator[None]:
    """Silences what JAX advises the author of a program while it is lowered; none of it is a fault of the program."""
    with warnings.catch_warnings():
        for advice in ("Some donated buffers were not usable", "The Pallas Triton backend is deprecated"):
            warnings.filterwarnings("ignore", message=advice)
        yield


def array_text(shape: Sequence[Any], dtype: Any) -> str:
    """ "float32[8,128]"."""
    return f"{getattr(dtype, 'name', dtype)}[{','.join(str(size) for size in shape)}]"
