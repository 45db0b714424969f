"""How the operands of a sharded program lie over devices: as JSON beside the bytes, and over devices at hand again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from kernel_audit.errors import EnvironmentFault

# One entry a dimension: no axis, one axis, or several. A leaf without a sharding has None instead of a list.
Spec: TypeAlias = list[str | list[str] | None]


def mesh_axes(leaves: Sequence[jax.ShapeDtypeStruct]) -> list[tuple[str, int]]:
    """(axis name, size) of the mesh that the operands' shardings name; empty for an unsharded program."""
    for leaf in leaves:
        if isinstance(leaf.sharding, NamedSharding):
            return [(str(name), int(size)) for name, size in leaf.sharding.mesh.shape.items()]
    return []


def spec_of(leaf: jax.ShapeDtypeStruct) -> Spec | None:
    """The partition spec of one operand as JSON."""
    if not isinstance(leaf.sharding, NamedSharding):
        return None
    return [list(entry) if isinstance(entry, tuple) else entry for entry in leaf.sharding.spec]


def lay_over(axes: Sequence[tuple[str, int]], specs: Sequence[Spec | None]) -> list[NamedSharding]:
    """A sharding for each operand over the first devices at hand, with the axis names of the capture (JAX checks them).

    Raises EnvironmentFault when there are fewer devices than the mesh needs.
    """
    names = tuple(name for name, _ in axes)
    sizes = tuple(size for _, size in axes)
    needed = int(np.prod(sizes))
    devices = jax.devices()
    if len(devices) < needed:
        mesh = ", ".join(f"{name}={size}" for name, size in axes)
        raise EnvironmentFault(
            "a sharded program needs more devices than there are",
            stage="load",
            where=f"mesh {mesh}",
            expected=f"{needed} devices",
            got=f"{len(devices)} devices of platform {jax.default_backend()}",
            next_command="set XLA_FLAGS=--xla_force_host_platform_device_count before JAX starts",
        )
    grid = np.array(devices[:needed]).reshape(sizes)
    mesh = jax.sharding.Mesh(grid, names, axis_types=(AxisType.Auto,) * len(names))
    return [NamedSharding(mesh, _partition(spec)) for spec in specs]


def _partition(spec: Spec | None) -> PartitionSpec:
    entries: list[Any] = [tuple(entry) if isinstance(entry, list) else entry for entry in spec or []]
    return PartitionSpec(*entries)
