"""How the kernels of a program run: in the generic interpreter, by a target's compiler, in the TPU interpreter."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, TypeAlias

from kernel_audit.program import compat


@dataclasses.dataclass(frozen=True)
class Generic:
    """Pallas's generic interpreter: ordinary XLA operations, exportable, runs on any backend."""

    name = "generic"


@dataclasses.dataclass(frozen=True)
class Target:
    """The kernel itself, for the target's compiler: `platform` is "tpu" or "cuda"."""

    platform: Literal["tpu", "cuda"] = "tpu"
    name = "target"


@dataclasses.dataclass(frozen=True)
class TpuInterpreter:
    """The TPU interpreter: simulated memories, DMAs and semaphores on the host. It cannot be exported.

    `vector_clock_size=256`: the default clock has one slot for all DMAs of a core and misses races between them.
    """

    detect_races: bool = True
    vector_clock_size: int = 256
    uninitialized_memory: Literal["nan", "zero"] = "nan"
    dma_execution_mode: Literal["on_wait", "eager"] = "on_wait"
    random_seed: int | None = None
    num_cores: int = 1
    name = "tpu-interpreter"


Mode: TypeAlias = Generic | Target | TpuInterpreter


def interpret_value(mode: Mode) -> Any:
    """What `interpret` has to be in each kernel equation."""
    if isinstance(mode, Generic):
        return True
    if isinstance(mode, Target):
        return False
    return compat.interpreter_params(**dataclasses.asdict(mode))
