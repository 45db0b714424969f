"""Described targets: what a compiler is told of a device that is not here. No JAX; safe in the parent."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from kernel_audit.errors import TargetError
from kernel_audit.records import DeviceDescription, device_of
from kernel_audit.records.devices import FOLDER

DEFAULT_TARGETS = ("tpu:v5e", "gpu:h200")  # of an audit that names none
MOST_DEVICES = 256
_HOST_GPUS = 8

# platform -> packages whose compiler takes its programs, and the extra that installs them
COMPILERS = {"tpu": (("libtpu",), "tpu"), "gpu": (("jax_cuda12_plugin", "jax_cuda13_plugin"), "cuda")}
_REPORTED = {
    "tpu": ("libtpu",),
    "gpu": ("jax-cuda12-plugin", "jax-cuda12-pjrt", "jax-cuda13-plugin", "jax-cuda13-pjrt", "nvidia-cuda-nvcc-cu12"),
}


@dataclass(frozen=True)
class DescribedTarget:
    """A device by its description, and the topology that it is compiled for.

    `topology` is an extent in devices ("2x2", "4x4"; a GPU's "hosts x 1 x devices"), `devices` how many that is.
    """

    device: DeviceDescription
    topology: str
    devices: int

    @property
    def name(self) -> str:
        """ "tpu:v5e"."""
        return self.device.name

    @property
    def platform(self) -> str:
        """ "tpu" or "gpu", which is also what `jax.default_backend()` answers there."""
        return self.device.kind

    @property
    def export_platform(self) -> str:
        """What `jax.export` calls the platform."""
        return "cuda" if self.platform == "gpu" else self.platform

    @property
    def topology_name(self) -> str:
        """The topology as the compiler's plugin reads it."""
        return f"{self.name.partition(':')[2]}:{self.topology}" if self.platform == "tpu" else self.topology

    def target_config(self) -> str:
        """A GPU's description for XLA, as text; empty for a TPU, which its compiler knows by name."""
        return _config_file(self.name).read_text("utf-8") if self.platform == "gpu" else ""

    def compilers(self) -> dict[str, str]:
        """Versions of what compiles for it here."""
        found = {}
        for name in ("jax", "jaxlib", *_REPORTED[self.platform]):
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                continue
        return found

    def missing(self) -> str:
        """Why nothing can be compiled for it here, with the command that helps; empty where it can."""
        modules, extra = COMPILERS[self.platform]
        if any(find_spec(name) is not None for name in modules):
            return ""
        return f'not compiled: no compiler for {self.name} is installed here; pip install "kernel-audit[{extra}]"'


def described_target(name: str, topology: str | None = None) -> DescribedTarget:
    """The target called `name`, over `topology` (the first that its data file lists where None).

    Raises TargetError for an unknown name, for a device that its compiler needs a description of which is not here, and for a
    topology that is no extent of 1 to 256 devices.
    """
    device = device_of(name)
    if device.kind == "gpu" and not _config_file(name).is_file():
        raise TargetError(
            "this target's compiler needs a description that is not here",
            stage="compile",
            where=f"--target {name}",
            expected=f"target/devices/{_config_file(name).name}",
            got="no such file",
        )
    extent, devices = _extent(device, topology or first_topology(device))
    return DescribedTarget(device, extent, devices)


def first_topology(device: DeviceDescription) -> str:
    """The extent of the first topology that a device's data file lists."""
    return _extents(device)[0]


def undescribed(device: DeviceDescription, topology: str, got: str) -> TargetError:
    """What is said of a topology that cannot be described, whoever noticed: here, or the target's compiler."""
    return TargetError(
        "a topology that cannot be described",
        stage="compile",
        where=f"--topology {topology}",
        expected=f"an extent of {device.name}, such as {', '.join(_extents(device))}; 1 to {MOST_DEVICES} devices",
        got=got,
    )


def _extents(device: DeviceDescription) -> list[str]:
    return [each.rpartition(":")[2] for each in device.topologies]


def _config_file(name: str) -> Path:
    return FOLDER / f"{name.replace(':', '-')}.txtpb"


def _extent(device: DeviceDescription, text: str) -> tuple[str, int]:
    """The extent as the platform's compiler writes it, and its devices; a GPU's "4x4" is two hosts of eight."""
    sizes = [int(each) for each in text.split("x")] if re.fullmatch(r"\d+(x\d+)*", text) else []
    devices = math.prod(sizes)
    if not sizes or not 1 <= devices <= MOST_DEVICES:
        raise undescribed(device, text, repr(text))
    if device.kind == "gpu" and len(sizes) != 3:
        hosts = max(1, devices // _HOST_GPUS)
        return f"{hosts}x1x{devices // hosts}", devices
    return "x".join(str(each) for each in sizes), devices
