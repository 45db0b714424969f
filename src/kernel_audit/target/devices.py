"""Which device is really there, and whether arrays lie on it. A claim in a text or a keyword counts for nothing."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import jax

from kernel_audit.errors import TargetError

# target -> what JAX calls it, as a backend and as the platform of a device
NAMES = {"tpu": ("tpu",), "gpu": ("gpu", "cuda", "rocm")}


def require_target(target: str) -> jax.Device:
    """The first device of `target` ("tpu" or "gpu"); nothing is allocated.

    Raises TargetError where JAX's backend is another one, or none can be started.
    """
    logging.getLogger("jax._src.xla_bridge").setLevel(logging.ERROR)  # its advice is said in the error below
    with _runtimes_quiet() as said:
        try:
            backend = jax.default_backend()
            devices = [each for each in jax.local_devices() if platform_of(each) in NAMES[target]]
        except RuntimeError as error:
            raise _missing(target, f"no backend: {str(error).splitlines()[0]}") from None
    if backend not in NAMES[target] or not devices:
        raise _missing(target, f"backend {backend!r}")
    sys.stderr.write(said[0])  # of a device that is there its runtime may say what it likes
    return devices[0]


@contextlib.contextmanager
def _runtimes_quiet() -> Iterator[list[str]]:
    """What is written to standard error below Python meanwhile, as one text at the end: an installed runtime without its
    device complains at length before JAX goes on without it."""
    said = [""]
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as aside:
        os.dup2(aside.fileno(), 2)
        try:
            yield said
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            aside.seek(0)
            said[0] = aside.read().decode("utf-8", "replace")


def _missing(target: str, got: str) -> TargetError:
    platforms = os.environ.get("JAX_PLATFORMS", "")
    elsewhere = platforms and not set(platforms.split(",")) & set(NAMES[target])
    return TargetError(
        f"no {target.upper()} to run on; nothing was run, and nothing is simulated instead",
        stage="target",
        where=f"this process, JAX {jax.__version__}",
        expected=f"a {target.upper()} backend" + (", and JAX_PLATFORMS not set to another" if elsewhere else ""),
        got=got,
        settled={"JAX_PLATFORMS": platforms} if platforms else {},
        next_command=f"the same command on a machine with a {target.upper()} and JAX installed for it",
    )


def platform_of(device: Any) -> str:
    """What JAX calls the platform of a device."""
    return device.platform


def devices_of(args: Any) -> list[Any] | None:
    """The devices on which the arrays of a tree lie; None where a leaf lies on none (NumPy, traced, no array at all)."""
    found: list[Any] = []
    for leaf in jax.tree.leaves(args):
        if isinstance(leaf, jax.core.Tracer) or not callable(getattr(leaf, "devices", None)):
            return None
        found += leaf.devices()
    return found or None


def lies_on(target: str, args: Any) -> bool:
    """Whether the backend is `target` and every array of the tree lies on its devices alone."""
    if jax.default_backend() not in NAMES[target]:
        return False
    devices = devices_of(args)
    return devices is not None and all(platform_of(each) in NAMES[target] for each in devices)
