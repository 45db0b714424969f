"""The device that a program is captured for, described to JAX while the backend stays the CPU."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax

from kernel_audit.program import compat
from kernel_audit.program.raised import is_the_candidates

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


@contextlib.contextmanager
def claimed_backend(name: str) -> Iterator[list[str]]:
    """While open, `jax.default_backend()` answers `name`. Yields a list that grows with each place outside of the libraries
    that asks ("file.py:line").

    Enter it before the candidate is imported: then `from jax import default_backend` is caught as well.
    `jax.devices()[0].platform` is not.
    """
    original = jax.default_backend
    asked: list[str] = []

    def answered(*_args: Any, **_kwargs: Any) -> str:
        caller = sys._getframe(1)
        module = str(caller.f_globals.get("__name__", ""))
        if is_the_candidates(caller.f_code.co_filename, module):
            asked.append(f"{Path(caller.f_code.co_filename).name}:{caller.f_lineno}")
        return name

    jax.default_backend = answered
    try:
        yield asked
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
