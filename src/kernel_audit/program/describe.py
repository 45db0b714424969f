"""The device that a program is captured for, described to JAX while the backend stays the CPU."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import jax

from kernel_audit.program import compat

_latest: str | None = None


def platform_of(device_kind: str) -> str:
    """The platform whose compiler takes programs for this device: "cuda" for NVIDIA's, "tpu" otherwise."""
    return "cuda" if device_kind.startswith("NVIDIA") else "tpu"


@contextlib.contextmanager
def described(device_kind: str, num_cores: int = 1) -> Iterator[None]:
    """While open, Pallas sees a chip of `device_kind` with `num_cores` cores when it traces, lowers and interprets.

    Not `jax.sharding.use_abstract_mesh`: a context mesh clashes with a candidate's own mesh and leaves `shape_cast`s in
    kernel bodies. One described device at a time in a process. When it changes, JAX's caches are cleared, so
    that executables compile again: take one device after the other, not in turns.
    """
    global _latest
    answers, caches = compat.chip_answers(device_kind, num_cores)
    if _latest not in (None, device_kind):
        jax.clear_caches()  # a jitted candidate traced for the other device must not be reused
    _latest = device_kind
    before = [getattr(module, name) for module, name, _ in answers]
    _clear(caches)
    for module, name, answer in answers:
        setattr(module, name, _constant(answer))
    try:
        yield
    finally:
        for (module, name, _), original in zip(answers, before, strict=True):
            setattr(module, name, original)
        _clear(caches)


@dataclasses.dataclass
class Claim:
    """How often `jax.default_backend` was asked for while a backend was claimed."""

    asked: int = 0


@contextlib.contextmanager
def claimed_backend(name: str) -> Iterator[Claim]:
    """While open, `jax.default_backend()` answers `name`; the claim that is given counts who asks.

    Enter it before the candidate is imported: then `from jax import default_backend` is caught as well.
    `jax.devices()[0].platform` is not.
    """
    original = jax.default_backend
    claim = Claim()

    def answer(*_: Any, **__: Any) -> str:
        claim.asked += 1
        return name

    jax.default_backend = answer
    try:
        yield claim
    finally:
        jax.default_backend = original


def _constant(answer: Any) -> Any:
    def answered(*_args: Any, **_kwargs: Any) -> Any:
        return answer

    return answered


def _clear(caches: list[Any]) -> None:
    for cached in caches:
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()
