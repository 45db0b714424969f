"""What affine index maps prove without looking at a grid is what looking at every point of it says."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.experimental import pallas as pl

from kernel_audit.inspect.affine import proved
from kernel_audit.inspect.equation import read_equation
from kernel_audit.inspect.index_map import affine_indices
from kernel_audit.inspect.ownership import enumerated
from kernel_audit.inspect.walk import kernel_equations

GRIDS = st.lists(st.integers(1, 4), min_size=1, max_size=3)
MEANINGS = st.sampled_from(["parallel", "arbitrary"])


@settings(max_examples=40, deadline=None)
@given(data=st.data(), grid=GRIDS)
def test_the_proof_says_what_every_point_says(data: st.DataObject, grid: list[int]):
    coefficients = [[data.draw(st.sampled_from([-1, 0, 0, 1, 2, 4])) for _ in grid] for _ in range(2)]
    constants = [data.draw(st.integers(0, 3)) for _ in range(2)]
    shape = tuple(
        data.draw(st.integers(1, 12)) * size - cut for size, cut in ((8, data.draw(st.integers(0, 7))), (128, 0))
    )
    semantics = tuple(data.draw(MEANINGS) for _ in grid)

    def index(*point):
        return tuple(
            c + sum(a * x for a, x in zip(row, point, strict=True))
            for row, c in zip(coefficients, constants, strict=True)
        )

    def body(x_ref, out_ref):
        out_ref[...] = x_ref[...]

    spec, out = pl.BlockSpec((8, 128), index), jax.ShapeDtypeStruct(shape, jnp.float32)
    call = pl.pallas_call(body, grid=tuple(grid), in_specs=[spec], out_specs=spec, out_shape=out)
    ((path, equation, trips, around),) = kernel_equations(jax.make_jaxpr(call)(out))
    mapping = read_equation(path, "body", equation, trips=trips, platform="tpu", around=around).outputs[0]
    forms = [each for each in affine_indices(mapping, len(grid)) if each is not None]
    assert len(forms) == 2
    claimed = proved(mapping, forms, grid, semantics)
    if claimed is None:  # the maps have another form than the proof needs
        return
    looked_at = enumerated(mapping, grid, semantics)
    for name, value in claimed.items():
        if name == "proof" or value is None:
            continue
        if name in ("repeated", "revisited", "shared_parallel") and claimed["out_of_range"]:
            continue  # programs outside come between: said of a map that is wrong anyway
        assert value == getattr(looked_at, name), (name, grid, coefficients, constants, shape, semantics)
    assert claimed["uncovered"] <= math.prod(mapping.counts)
