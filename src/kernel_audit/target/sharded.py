"""The complete step over several described devices: the audit's step with the candidate, or a baseline, in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding

AXIS = "data"


def sharded_step(
    step: Callable[..., Any], function: Callable[..., Any], devices: int, options: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """`step(function, mesh, **options)` as a callable of the audit's operands, laid out over an abstract mesh of `devices`.

    A step is a function of (local, mesh): `local` is the function under audit, to be called on each device's shard; `mesh` has
    one axis, "data". It returns the step as a function of the audit's operands, and the partition spec of each operand.
    """
    mesh = AbstractMesh((devices,), (AXIS,), axis_types=(AxisType.Auto,))

    def whole(*operands: Any, **keywords: Any) -> Any:
        def local(*shards: Any) -> Any:
            return function(*shards, **keywords)

        made, _ = step(local, mesh, **dict(options or {}))
        return made(*operands)

    def sharded(specs: Sequence[jax.ShapeDtypeStruct]) -> tuple[jax.ShapeDtypeStruct, ...]:
        _, partition = step(function, mesh, **dict(options or {}))
        laid = [NamedSharding(mesh, each) for each in partition]
        return tuple(
            jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=lay) for each, lay in zip(specs, laid, strict=True)
        )

    whole.sharded = sharded  # type: ignore[attr-defined]
    return whole
