"""A candidate's own target mode, traced where there is no target: JAX is made to answer as if there were one.

The answers can be changed after the candidate was imported: a guard that took `default_backend` by name is told the same as
one that asks `jax.default_backend()`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import jax

from kernel_audit.program.capture import Program
from kernel_audit.program.raised import CandidateRaised

# target -> what JAX calls its backend and its devices
PLATFORMS = {"tpu": ("tpu",), "gpu": ("gpu", "cuda")}
Claim = Callable[..., AbstractContextManager[None]]


@dataclass(frozen=True)
class ClaimedDevice:
    """A device of the target, as far as a guard asks for it."""

    platform: str
    device_kind: str
    id: int = 0
    process_index: int = 0


@contextlib.contextmanager
def changeable_answers(target: str, device_kind: str) -> Iterator[Claim]:
    """Yields a context manager: while it is open `jax.default_backend()` answers `target` ("tpu" or "gpu"), and with
    `devices=True` `jax.devices()` and `jax.local_devices()` give one of `device_kind`. Enter this before the candidate is
    imported.
    """
    true = {name: getattr(jax, name) for name in ("default_backend", "devices", "local_devices")}
    claimed: set[str] = set()

    @contextlib.contextmanager
    def claim(*, devices: bool = False) -> Iterator[None]:
        claimed.update(true if devices else ["default_backend"])
        try:
            yield
        finally:
            claimed.clear()

    def default_backend() -> str:
        return target if "default_backend" in claimed else true["default_backend"]()

    def devices_by(name: str) -> Callable[..., list[Any]]:
        def devices(*args: Any, **keywords: Any) -> list[Any]:
            asked = keywords.get("backend", args[-1] if args else None)
            if name in claimed and asked in (None, *PLATFORMS[target]):
                return [ClaimedDevice(target, device_kind)]
            return true[name](*args, **keywords)

        return devices

    answers = {"default_backend": default_backend, "devices": devices_by("devices")}
    answers["local_devices"] = devices_by("local_devices")
    for name, answer in answers.items():
        setattr(jax, name, answer)
    try:
        yield claim
    finally:
        for name, answer in true.items():
            setattr(jax, name, answer)


def traced_for_target(trace: Callable[[], Program], claim: Claim) -> Program:
    """The program that `trace` captures of the candidate's target mode, as under `jax.jit` on a target.

    Devices are claimed only for a guard that asks for them: a candidate that lays arrays over devices needs true ones.
    Raises CandidateRaised with what the candidate raised even then.
    """
    try:
        with claim():
            return trace()
    except CandidateRaised:
        with claim(devices=True):
            return trace()
