"""Who owns which block, against what a loop over the grid says."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl

from kernel_audit.inspect import ownership
from kernel_audit.inspect.equation import KernelEquation, read_equation
from kernel_audit.inspect.ownership import Visits, moved_bytes, visits
from kernel_audit.inspect.walk import kernel_equations


def kernel_of(
    grid: tuple[int, ...], index: Callable[..., Any], block: tuple[Any, ...], shape: tuple[int, ...]
) -> KernelEquation:
    """A kernel whose operand and result are cut the same way."""

    def body(x_ref, out_ref):
        out_ref[...] = x_ref[...]

    spec = pl.BlockSpec(block, index)
    out = jax.ShapeDtypeStruct(shape, jnp.float32)
    call = pl.pallas_call(body, grid=grid, in_specs=[spec], out_specs=spec, out_shape=out)
    ((path, equation, trips, around),) = kernel_equations(jax.make_jaxpr(call)(out))
    return read_equation(path, "body", equation, trips=trips, platform="tpu", around=around)


def by_hand(grid: tuple[int, ...], index: Callable[..., Any], block: tuple[int, ...], shape: tuple[int, ...]) -> Visits:
    """The same counts by a plain loop."""
    counts = [-(-extent // size) for extent, size in zip(shape, block, strict=True)]
    sequence = [tuple(int(each) for each in index(*point)) for point in itertools.product(*map(range, grid))]
    inside = [all(0 <= each < count for each, count in zip(found, counts, strict=True)) for found in sequence]
    owned = [found for found, good in zip(sequence, inside, strict=True) if good]
    changes = [found for step, found in enumerate(sequence) if step == 0 or found != sequence[step - 1]]
    size = {found: np.prod([min(b, e - i * b) for i, b, e in zip(found, block, shape, strict=True)]) for found in owned}
    return Visits(
        proof="enumerated",
        uncovered=int(np.prod(counts)) - len(set(owned)),
        repeated=sum(owned.count(found) > 1 for found in set(owned)),
        revisited=sum(changes.count(found) > 1 for found in set(owned)),
        out_of_range=inside.count(False),
        copies=len(changes) if all(inside) else None,
        clipped_elements=int(sum(size[found] for found in changes)) if all(inside) else None,
        floor_elements=int(sum(size.values())) if all(inside) else None,
    )


CASES = {
    "each once": ((3, 2), lambda i, j: (i, j), (8, 128), (20, 200)),
    "one axis stays": ((3, 2), lambda i, j: (i, 0), (8, 128), (24, 128)),
    "the outer axis repeats": ((3, 2), lambda i, j: (j, 0), (8, 128), (16, 128)),
    "backwards": ((3, 2), lambda i, j: (2 - i, 1 - j), (8, 128), (20, 200)),
    "two axes in one dimension": ((3, 4), lambda i, j: (4 * i + j, 0), (8, 128), (96, 128)),
    "one axis in two dimensions": ((3,), lambda i: (i, i), (8, 128), (24, 384)),
    "late by one": ((3, 2), lambda i, j: (i + 1, j), (8, 128), (20, 200)),
    "every second": ((3, 2), lambda i, j: (2 * i, j), (8, 128), (40, 256)),
    "clamped": ((4,), lambda i: (jnp.maximum(i - 1, 0), 0), (8, 128), (32, 128)),
    "halved": ((4,), lambda i: (i // 2, 0), (8, 128), (16, 128)),
    "wrapped": ((4,), lambda i: (i % 2, 0), (8, 128), (16, 128)),
    "nothing to do": ((1,), lambda i: (0, 0), (8, 128), (8, 128)),
}


@pytest.mark.parametrize("name", CASES)
def test_counts_are_those_of_a_loop(name: str):
    grid, index, block, shape = CASES[name]
    kernel = kernel_of(grid, index, block, shape)
    found, wanted = visits(kernel.outputs[0], kernel.grid), by_hand(grid, index, block, shape)
    for field in ("uncovered", "repeated", "revisited", "out_of_range", "copies", "clipped_elements", "floor_elements"):
        assert getattr(found, field) == getattr(wanted, field), field


def test_bytes_are_whole_blocks_and_clipped_ones():
    kernel = kernel_of(*CASES["each once"])
    found = visits(kernel.outputs[0], kernel.grid)
    assert moved_bytes(kernel.outputs[0], found) == (6 * 8 * 128 * 4, 20 * 200 * 4, 20 * 200 * 4)


def test_a_squeezed_dimension_is_a_block_of_one():
    kernel = kernel_of((3, 2), lambda b, i: (b, i, 0), (None, 8, 128), (3, 16, 128))
    found = visits(kernel.outputs[0], kernel.grid)
    assert (kernel.outputs[0].block, found.uncovered, found.copies) == ((1, 8, 128), 0, 6)


def test_starts_at_whole_blocks_are_counted_in_blocks_though_stated_in_elements():
    kernel = kernel_of((4,), lambda i: (i * 8, 0), (pl.Element(8), pl.Element(128)), (32, 128))
    found = visits(kernel.outputs[0], kernel.grid)
    assert (found.uncovered, found.repeated, found.out_of_range) == (0, 0, 0)


def test_what_is_shared_over_a_parallel_axis_is_counted():
    kernel = kernel_of((4,), lambda i: (i // 2, 0), (8, 128), (16, 128))
    shared = {
        each: visits(kernel.outputs[0], kernel.grid, (each,)).shared_parallel for each in ("parallel", "arbitrary")
    }
    assert shared == {"parallel": 2, "arbitrary": 0}


@pytest.mark.parametrize("grid", [(10**6, 10**6), (10**4, 10**4, 10**4)])
def test_a_large_grid_is_proved_from_its_maps(grid: tuple[int, ...]):
    kernel = kernel_of(grid, lambda *point: (point[0], point[-1]), (8, 128), (grid[0] * 8 - 3, grid[-1] * 128))
    found = visits(kernel.outputs[0], kernel.grid)
    assert (found.proof, found.uncovered, found.out_of_range) == ("affine", 0, 0)
    middle = int(np.prod(grid[1:-1], dtype=object)) if len(grid) > 2 else 1
    assert found.copies == grid[0] * grid[-1] * middle
    assert found.revisited == (grid[0] * grid[-1] if len(grid) > 2 else 0)


def test_one_uncovered_block_of_a_large_grid_is_seen():
    kernel = kernel_of((10**6, 10**6), lambda i, j: (i, j), (8, 128), (8 * 10**6 + 1, 128 * 10**6))
    assert visits(kernel.outputs[0], kernel.grid).uncovered == 10**6


def test_a_large_grid_whose_maps_are_not_affine_is_looked_at_along_the_axes_that_count():
    kernel = kernel_of((1000, 10**6), lambda i, j: (i // 2, 0), (8, 128), (4000, 128))
    found = visits(kernel.outputs[0], kernel.grid, ("arbitrary", "parallel"))
    assert (found.proof, found.uncovered, found.out_of_range) == ("enumerated", 0, 0)
    assert (found.repeated, found.revisited, found.shared_parallel) == (500, 0, 500)


def test_what_cannot_be_proved_is_called_sampled(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ownership, "ENUMERATED_POINTS", 100)
    kernel = kernel_of((100, 100), lambda i, j: (i // 2, j), (8, 128), (400, 12800))
    found = visits(kernel.outputs[0], kernel.grid)
    assert (found.proof, found.uncovered, found.copies) == ("sampled", None, None)
