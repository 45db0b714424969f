"""Described targets: what a compiler is told of a device that is not here. No JAX; safe in the parent."""

from __future__ import annotations

import math
import re
import tomllib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kernel_audit.errors import AuditError, near

DEVICES = Path(__file__).parent / "devices"
MOST_DEVICES = 256

# platform -> packages whose compiler takes its programs, and the extra that installs them
COMPILERS = {"tpu": (("libtpu",), "tpu"), "gpu": (("jax_cuda12_plugin", "jax_cuda13_plugin"), "cuda")}
_REPORTED = {
    "tpu": ("libtpu",),
    "gpu": ("jax-cuda12-plugin", "jax-cuda12-pjrt", "jax-cuda13-plugin", "jax-cuda13-pjrt", "nvidia-cuda-nvcc-cu12"),
}


@dataclass(frozen=True)
class DescribedTarget:
    """A target by name ("tpu:v5e") with what its data file says, and the topology that it is compiled for.

    `kind` is the device kind that JAX and Pallas see. `topology` is its extent in devices ("2x2", "4x4"; a GPU's
    "hosts x 1 x devices"), `devices` how many that is. `fast_bytes` is its on-chip memory that kernels lay blocks out in.
    """

    name: str
    platform: str
    kind: str
    topology: str
    devices: int
    hbm_bytes_per_s: float
    clock_hz: float | None
    fast_bytes: int
    source: str

    @property
    def family(self) -> str:
        """ "v5e" of "tpu:v5e"."""
        return self.name.partition(":")[2]

    @property
    def export_platform(self) -> str:
        """What `jax.export` calls the platform."""
        return "cuda" if self.platform == "gpu" else self.platform

    @property
    def backend(self) -> str:
        """What `jax.default_backend()` answers there."""
        return self.platform

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


def known_targets() -> dict[str, dict[str, Any]]:
    """Every described device by its name: the content of its data file."""
    tables = [tomllib.loads(path.read_text("utf-8")) for path in sorted(DEVICES.glob("*.toml"))]
    return {table["name"]: table for table in tables}


def described_target(name: str, topology: str | None = None) -> DescribedTarget:
    """The target called `name`, over `topology` (the first that its data file lists where None).

    Raises AuditError for an unknown name, and for a topology that is no extent of 1 to 256 devices.
    """
    known = known_targets()
    if name not in known:
        raise AuditError(
            "no described target of this name",
            stage="compile",
            where=f"--target {name}",
            expected="one of " + ", ".join(known),
            got=near(name, known),
        )
    table = known[name]
    platform = name.partition(":")[0]
    if platform == "gpu" and not _config_file(name).is_file():
        raise AuditError(
            "this target's compiler needs a description that is not here",
            stage="compile",
            where=f"--target {name}",
            expected=f"target/devices/{_config_file(name).name}",
            got="no such file",
        )
    text = topology or str(table["topologies"][0]).rpartition(":")[2]
    extent, devices = _extent(platform, text)
    return DescribedTarget(
        name=name,
        platform=platform,
        kind=table["device_kind"],
        topology=extent,
        devices=devices,
        hbm_bytes_per_s=float(table["hbm_bytes_per_s"]),
        clock_hz=float(table["clock_hz"]) if table.get("clock_hz") else None,
        fast_bytes=int(table.get("vmem_bytes") or table.get("shared_bytes") or 0),
        source=str(table.get("sources", {}).get("hbm_bytes_per_s", "")),
    )


def _config_file(name: str) -> Path:
    return DEVICES / f"{name.replace(':', '-')}.txtpb"


def _extent(platform: str, text: str) -> tuple[str, int]:
    """The extent as the platform's compiler writes it, and its devices; a GPU's "4x4" is 2 hosts of 8."""
    sizes = [int(each) for each in text.split("x")] if re.fullmatch(r"\d+(x\d+)*", text) else []
    devices = math.prod(sizes) if sizes else 0
    if not sizes or not 1 <= devices <= MOST_DEVICES:
        raise AuditError(
            "a topology that cannot be described",
            stage="compile",
            where=f"--topology {text}",
            expected=f"an extent such as 4x4, of 1 to {MOST_DEVICES} devices",
            got=repr(text),
        )
    if platform == "gpu" and len(sizes) != 3:
        hosts = max(1, devices // 8)
        return f"{hosts}x1x{devices // hosts}", devices
    return "x".join(str(each) for each in sizes), devices
