"""What is published about the devices that kernels are for. Data files with sources, read and never measured."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec

from kernel_audit.errors import TargetError, near
from kernel_audit.records.canonical import Record

FOLDER = Path(__file__).parent.parent / "target" / "devices"


class DeviceDescription(Record, kw_only=True):
    """One device of a target, by what its maker publishes: for one chip (TPU) or one board (GPU).

    `name` is the target ("tpu:v5e"), `kind` "tpu" or "gpu", `device_kind` what JAX calls it. `vmem_bytes` is the vector
    memory of one TPU core, `shared_bytes` the shared memory of one GPU block; 0 where the other kind applies.
    `clock_hz` is 0 where none is known. `peak_flops` are operations a second by dtype name; `tile` the smallest tile of
    32-bit elements; `topologies` names that the compiler takes. `sources` says for fields where they come from.
    """

    name: str
    kind: str
    device_kind: str
    cores: int
    vmem_bytes: int
    shared_bytes: int
    hbm_bytes: int
    hbm_bytes_per_s: float
    clock_hz: float
    tile: list[int]
    topologies: list[str]
    peak_flops: dict[str, float]
    sources: dict[str, str]
    compute_capability: list[int] = []

    @property
    def fast_bytes(self) -> int:
        """The memory that blocks of a kernel have to fit into."""
        return self.vmem_bytes or self.shared_bytes


@cache
def known_devices() -> dict[str, DeviceDescription]:
    """Every described device by target name, in order of the names."""
    found = [_read(path) for path in sorted(FOLDER.glob("*.toml"))]
    return {each.name: each for each in found}


def device_of(target: str) -> DeviceDescription:
    """The device of a target such as "tpu:v5e". Raises TargetError, with near names, where none is described."""
    known = known_devices()
    if target in known:
        return known[target]
    raise TargetError(
        "no description of this target",
        stage="target",
        where=f"--target {target}",
        expected="one of " + ", ".join(known),
        got=near(target, known),
    )


def _read(path: Path) -> DeviceDescription:
    data = tomllib.loads(path.read_text("utf-8"))
    return msgspec.convert(data, DeviceDescription)
