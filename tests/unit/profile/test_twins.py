"""The step evaluated again: cut at its regions it gives the same, without a part it gives the right shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, PartitionSpec

from kernel_audit.profile.rewritten import without_collectives, without_local
from kernel_audit.profile.staged import Cut, NotCut

SPLIT, WHOLE = PartitionSpec("data"), PartitionSpec()
OPERANDS = (np.arange(32, dtype=np.float32).reshape(8, 4) / 8, np.ones(4, np.float32))


def step(check_vma: bool = False) -> Callable[..., Any]:
    """Padding, local arithmetic, two collectives, an update: with a jitted part inside."""
    mesh = Mesh(np.array(jax.devices()[:1]), ("data",), axis_types=(AxisType.Auto,))

    @jax.jit
    def product(X: jax.Array, w: jax.Array) -> jax.Array:
        return X @ w

    def shard(X: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        with jax.named_scope("region.local-arithmetic"):
            found = product(X, w)
        with jax.named_scope("region.communication"):
            return jax.lax.psum(found @ X, "data"), jax.lax.all_gather(found, "data", tiled=True)

    mapped = jax.shard_map(shard, mesh=mesh, in_specs=(SPLIT, WHOLE), out_specs=(WHOLE, SPLIT), check_vma=check_vma)

    def whole(X: jax.Array, w: jax.Array) -> dict[str, jax.Array]:
        with jax.named_scope("region.padding-and-cropping"):
            X = jnp.pad(X, ((0, 8), (0, 0)))
        total, found = mapped(X, w)
        with jax.named_scope("region.update"):
            return {"w": w - total, "found": found}

    return whole


@pytest.mark.parametrize("check_vma", [False, True])
def test_a_cut_step_gives_what_the_step_gives(check_vma: bool) -> None:
    function = step(check_vma)
    cut = Cut(function, OPERANDS)
    regions = [each.region for each in cut.parts]
    assert regions == ["padding-and-cropping", "local-arithmetic", "communication", "update"]
    seen = []

    def each(part: Any, call: Callable[[], Any]) -> Any:
        seen.append(part.name)
        return call()

    found, wanted = cut.run(OPERANDS, each), jax.jit(function)(*OPERANDS)
    assert seen == [part.name for part in cut.parts] and set(found) == {"w", "found"}
    for name in wanted:
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-6)


def test_a_step_that_hands_an_operand_through_its_shard_map_is_not_cut() -> None:
    mesh = Mesh(np.array(jax.devices()[:1]), ("data",), axis_types=(AxisType.Auto,))
    passing = jax.shard_map(lambda X: (X, X + 1), mesh=mesh, in_specs=SPLIT, out_specs=SPLIT, check_vma=False)
    with pytest.raises(NotCut, match="operand"):
        Cut(passing, OPERANDS[:1])


@pytest.mark.parametrize("check_vma", [False, True])
def test_without_collectives_the_results_keep_their_shapes(check_vma: bool) -> None:
    function = step(check_vma)
    twin, count = without_collectives(function, OPERANDS)
    assert count == 2
    text = str(jax.make_jaxpr(twin)(*OPERANDS))
    assert "psum" not in text and "all_gather" not in text
    shapes = [jax.eval_shape(each, *OPERANDS) for each in (function, twin)]
    assert shapes[0] == shapes[1]


def test_without_the_local_part_its_work_is_gone_and_its_results_depend_on_the_operands() -> None:
    def local(X: jax.Array, w: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.sum(X @ w), (X @ w).astype(jnp.bfloat16)

    stub = without_local(local)
    assert "dot_general" not in str(jax.make_jaxpr(stub)(*OPERANDS))
    assert jax.eval_shape(stub, *OPERANDS) == jax.eval_shape(local, *OPERANDS)
    left, right = stub(*OPERANDS), stub(OPERANDS[0] + 1, OPERANDS[1])
    assert float(left[0]) != float(right[0])
