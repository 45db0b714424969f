"""A device that is not there: it answers as a TPU would, keeps a clock of its own, and computes nothing.

With it the conduct of a benchmark can be tested, what it compiles, calls and waits for, on any machine. Its times are made
up, known to the test beforehand, and no measurement of anything. Everything is installed before the code under test is
imported, so that `from time import perf_counter` is caught as well.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from kernel_audit.course.stub_times import COMPILE_S, DEVICE_KIND, DISPATCH_S, LOWER_S, duration_s


class StubDevice:
    """A device of one platform, as far as code asks for it."""

    def __init__(self, platform: str) -> None:
        self.platform = platform
        self.device_kind = DEVICE_KIND if platform == "tpu" else platform
        self.id = self.process_index = 0


class StubArray(jax.Array):
    """An array on a stub device, ready at a time of the stub's clock."""

    def __init__(self, machine: Machine, platform: str, ready_s: float = 0.0) -> None:
        self._machine, self._platform, self._ready_s = machine, platform, ready_s

    shape, ndim, size = (8, 128), 2, 1024  # type: ignore[assignment]
    dtype = np.dtype("float32")  # type: ignore[assignment]

    def devices(self) -> set[Any]:
        return {self._machine.devices[self._platform]}

    @property
    def device(self) -> Any:
        return self._machine.devices[self._platform]

    @property
    def sharding(self) -> Any:
        return _Sharding(self.devices())

    def block_until_ready(self) -> StubArray:
        self._machine.now_s = max(self._machine.now_s, self._ready_s)
        return self

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        self.block_until_ready()
        return np.zeros(self.shape, self.dtype)


@dataclass
class _Sharding:
    device_set: set[Any]


@dataclass
class Machine:
    """Clock, queue and log of the stub. `calls` counts runs by side, `compiled` holds sides in the order of compilation."""

    backend: str = "tpu"
    now_s: float = 1000.0
    free_s: float = 0.0
    compiled: list[str] = field(default_factory=list)
    calls: dict[str, int] = field(default_factory=dict)
    uncompiled: list[str] = field(default_factory=list)
    tracing: list[str] | None = None

    def __post_init__(self) -> None:
        self.devices = {name: StubDevice(name) for name in ("tpu", "cpu")}

    def reset(self, backend: str) -> None:
        """A new scenario: nothing compiled, nothing called."""
        self.__init__(backend)  # type: ignore[misc]

    def side(self, name: str) -> Callable[..., StubArray]:
        """The function under test of a side: it notes when it is traced, and when it is called without compilation."""

        def function(*args: Any) -> StubArray:
            if self.tracing is not None:
                self.tracing.append(name)
                return StubArray(self, "tpu")
            self.uncompiled.append(name)
            return self.run([name])

        function.__name__ = name
        return function

    def trace(self, function: Callable[..., Any], args: tuple[Any, ...], keywords: dict[str, Any]) -> list[str]:
        """Sides that a function calls."""
        self.tracing = []
        try:
            function(*args, **keywords)
            return self.tracing
        finally:
            self.tracing = None

    def run(self, sides: list[str]) -> StubArray:
        """Queues a run; gives its result, ready later."""
        self.now_s += DISPATCH_S
        for side in sides:
            index = self.calls.get(side, 0)
            self.calls[side] = index + 1
            self.free_s = max(self.now_s, self.free_s) + duration_s(side, index)
        return StubArray(self, "tpu", self.free_s)

    def install(self) -> None:
        """Puts the stub in the place of JAX's compiler, JAX's devices and Python's clocks, for the rest of the process."""
        jax.jit = self._jit
        jax.default_backend = lambda: self.backend
        jax.devices = jax.local_devices = lambda *_, **__: [self.devices[self.backend]]
        jax.block_until_ready = jax.device_get = self._wait
        for name in ("perf_counter", "monotonic", "time", "process_time"):
            setattr(time, name, lambda: self.now_s)
            setattr(time, f"{name}_ns", lambda: round(self.now_s * 1e9))
        timeit.default_timer = time.perf_counter  # a name of its own for it, taken before

    def _jit(self, function: Callable[..., Any] | None = None, **_: Any) -> Any:
        return (lambda each: StubJitted(self, each)) if function is None else StubJitted(self, function)

    def _wait(self, tree: Any) -> Any:
        for leaf in jax.tree.leaves(tree, is_leaf=lambda each: isinstance(each, StubArray)):
            if isinstance(leaf, StubArray):
                leaf.block_until_ready()
        return tree


class StubJitted:
    """What `jax.jit` gives: compiles when it is lowered and compiled, or on its first call."""

    def __init__(self, machine: Machine, function: Callable[..., Any]) -> None:
        self._machine, self._function = machine, function
        self._ready: StubCompiled | None = None

    def trace(self, *_: Any, **__: Any) -> StubJitted:
        return self

    def lower(self, *args: Any, **keywords: Any) -> StubLowered:
        sides = self._machine.trace(self._function, args, keywords)
        self._machine.now_s += sum(LOWER_S[each] for each in sides)
        return StubLowered(self._machine, sides)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        if self._machine.tracing is not None:
            return self._function(*args, **keywords)
        if self._ready is None:
            self._ready = self.lower(*args, **keywords).compile()
        return self._ready(*args, **keywords)


@dataclass
class StubLowered:
    machine: Machine
    sides: list[str]

    def compile(self, *_: Any, **__: Any) -> StubCompiled:
        self.machine.now_s += sum(COMPILE_S[each] for each in self.sides)
        self.machine.compiled += self.sides
        return StubCompiled(self.machine, self.sides)


@dataclass
class StubCompiled:
    machine: Machine
    sides: list[str]

    def __call__(self, *_: Any, **__: Any) -> StubArray:
        return self.machine.run(self.sides)
