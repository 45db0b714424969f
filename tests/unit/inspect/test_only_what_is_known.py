"""What a proof says is so, what is not certain is not known, and nothing of the program's author runs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from kernel_audit.inspect import inspect_program
from kernel_audit.program import capture

F32, I32 = jnp.float32, jnp.int32
ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)


def array(*shape: int, dtype: object = F32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def copied(x_ref, out_ref):
    out_ref[...] = x_ref[...]


def cut(grid: tuple[int, ...], index, shape: tuple[int, ...], semantics: tuple[str, ...] | None = None):
    spec = pl.BlockSpec((8, 128), index)
    options = pltpu.CompilerParams(dimension_semantics=semantics)
    call = pl.pallas_call(
        copied, grid=grid, in_specs=[spec], out_specs=spec, out_shape=array(*shape), compiler_params=options
    )
    (found,) = inspect_program(capture(call, (array(*shape),)), targets=[])
    return found


@pytest.mark.parametrize(
    "index",
    [
        lambda i: ((i * 0.5).astype(I32), 0),
        lambda i: (i.astype(jnp.int8).astype(I32), 0),
        lambda i: ((i.astype(jnp.uint8) * jnp.uint8(2)).astype(I32), 0),
    ],
)
def test_an_index_that_rounds_or_wraps_is_no_affine_form(index):
    found = cut((2_000_000,), index, (8 * 1_000_000, 128))
    assert found.ownership.proof == "sampled" and found.ownership.uncovered is None
    assert found.mappings[0].index_map == "(f(i), 0)"


def by_copies(*windows: tuple[int, int], rows: int = 16, back: tuple[tuple[int, int], ...] = ()):
    """A result of `rows` rows: windows (first row, rows) written by copies, others read back."""

    def body(x_ref, out_ref, staged_ref, done):
        def copy(source, target):
            made = pltpu.make_async_copy(source, target, done)
            made.start()
            made.wait()

        copy(x_ref, staged_ref)
        for first, size in windows:
            copy(staged_ref.at[pl.ds(0, size)], out_ref.at[pl.ds(first, size)])
        for first, size in back:
            copy(out_ref.at[pl.ds(first, size)], staged_ref.at[pl.ds(0, size)])

    scratch = [pltpu.VMEM((8, 128), F32), pltpu.SemaphoreType.DMA]
    call = pl.pallas_call(
        body, in_specs=[ANYWHERE], out_specs=ANYWHERE, out_shape=array(rows, 128), scratch_shapes=scratch
    )
    (found,) = inspect_program(capture(call, (array(8, 128),)), targets=[])
    return found


def test_a_window_smaller_than_its_block_does_not_cover_it():
    assert by_copies((0, 8), (8, 8)).ownership.uncovered == 0
    assert by_copies((0, 8), (8, 4)).ownership.uncovered is None
    assert by_copies((0, 8), (8, 4), rows=12).ownership.uncovered == 0  # the array ends there
    assert by_copies((0, 8), (8, 4), (8, 8)).ownership.uncovered == 0


def test_what_is_read_back_of_a_result_is_moved_and_not_written():
    found = by_copies((0, 8), back=((8, 8),))
    assert (found.ownership.blocks, found.ownership.uncovered, found.ownership.repeated) == (2, 1, 0)
    assert found.mappings[1].moved_bytes == 2 * 8 * 128 * 4
    assert [each.code for each in found.findings] == ["block-uncovered"]


def test_copies_are_followed_with_the_integers_that_their_dtypes_hold():
    def body(x_ref, out_ref, staged_ref, done):
        for first in (0, 8):
            row = (pl.program_id(0) + 256 + first).astype(jnp.uint8).astype(I32)
            mixed = (row + 1) * jnp.int32(1 << 30) * 4 + row
            made = pltpu.make_async_copy(x_ref, out_ref.at[pl.ds(pl.multiple_of(mixed, 8), 8)], done)
            made.start()
            made.wait()

    scratch = [pltpu.VMEM((8, 128), F32), pltpu.SemaphoreType.DMA]
    call = pl.pallas_call(
        body, grid=(1,), in_specs=[ANYWHERE], out_specs=ANYWHERE, out_shape=array(16, 128), scratch_shapes=scratch
    )
    (found,) = inspect_program(capture(call, (array(8, 128),)), targets=[])
    assert (found.ownership.uncovered, found.ownership.out_of_range) == (0, 0)


def by_table(table_of):
    def body(_table, x_ref, out_ref):
        out_ref[...] = x_ref[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, table: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, table: (table[i], 0)),
    )
    call = pl.pallas_call(body, grid_spec=spec, out_shape=array(32, 128))
    (found,) = inspect_program(capture(lambda x: call(table_of(), x), (array(32, 128),)), targets=[])
    return found.ownership.proof


def test_no_function_of_the_author_runs():
    ran = []

    def author(*_):
        ran.append(1)
        return np.arange(4, dtype=np.int32)

    shape = array(4, dtype=I32)
    assert by_table(lambda: jax.pure_callback(author, shape)) == "data-dependent"
    assert by_table(lambda: lax.cond(jnp.bool_(True), lambda: jax.pure_callback(author, shape), lambda: jnp.arange(4)))
    assert by_table(
        lambda: lax.map(lambda i: jax.pure_callback(lambda i: author()[0], array(dtype=I32), i), jnp.arange(4))
    )
    assert by_table(lambda: jax.experimental.io_callback(author, shape)) == "data-dependent"
    assert ran == []


def test_a_loop_without_a_known_end_is_not_run():
    assert by_table(lambda: lax.while_loop(lambda t: t[0] >= 0, lambda t: t, jnp.arange(4))) == "data-dependent"
    assert by_table(lambda: lax.fori_loop(0, 10**9, lambda _, t: t[::-1], jnp.arange(4))) == "data-dependent"
    assert by_table(lambda: lax.fori_loop(0, 3, lambda _, t: t[::-1], jnp.arange(4))) == "enumerated"


def test_a_result_without_elements_has_no_blocks():
    call = pl.pallas_call(copied, out_shape=array(0, 128))
    (found,) = inspect_program(capture(call, (array(0, 128),)), targets=[])
    assert (found.ownership.blocks, found.ownership.uncovered, found.findings, found.owner_map) == (0, 0, [], None)


def test_a_result_of_very_many_blocks_takes_no_memory_for_each():
    found = cut((2, 2), lambda i, j: (i + j, 0), (8 << 30, 128), ("parallel", "parallel"))
    assert (found.ownership.blocks, found.ownership.shared_parallel) == (1 << 30, 1)
    assert found.owner_map is not None and [row[0] for row in found.owner_map.owners[:4]] == [0, 1, 3, None]


@pytest.mark.parametrize(
    ("read", "wanted"),
    [
        (lambda y: y, 6),
        (lambda y: y[:16], 0),
        (lambda y: (y[:16], y[8:16]), 0),
        (lambda y: y[:20], 1),
        (lambda y: y[8:24], 1),
        (lambda y: y[8:40][:8], 0),
        (lambda y: (y[:16], y[32:48]), 2),
        (lambda y: y[::3], 6),
        (lambda y: y.reshape(-1)[:2048], None),
        (lambda y: lax.dynamic_slice(y, (jnp.int32(y[0, 0]), 0), (8, 128)), None),
    ],
)
def test_blocks_that_nobody_reads_need_not_be_written(read, wanted):
    spec = pl.BlockSpec((8, 128), lambda i: (i, 0))
    call = pl.pallas_call(copied, grid=(2,), in_specs=[spec], out_specs=spec, out_shape=array(64, 128))
    (found,) = inspect_program(capture(lambda x: read(call(x)), (array(16, 128),)), targets=[])
    assert found.ownership.uncovered == wanted
    assert [each.code for each in found.findings] == (["block-uncovered"] if wanted else [])
    assert found.padded_elements == 16 * 128


def test_scopes_that_follow_each_other_share_their_memory():
    def body(x_ref, out_ref):
        def one(a_ref):
            a_ref[...] = jnp.zeros_like(a_ref)
            out_ref[...] = a_ref[pl.ds(0, 8)]

        def two(a_ref):
            one(a_ref)
            pl.run_scoped(one, pltpu.VMEM((8, 128), F32))

        pl.run_scoped(one, pltpu.VMEM((24, 128), F32))
        pl.run_scoped(two, pltpu.VMEM((32, 128), F32))
        lax.cond(x_ref[0, 0] > 0, lambda: pl.run_scoped(two, pltpu.VMEM((16, 128), F32)), lambda: None)
        out_ref[...] = x_ref[...]

    (found,) = inspect_program(capture(pl.pallas_call(body, out_shape=array(8, 128)), (array(8, 128),)), targets=[])
    assert found.buffer_model_bytes == (2 * 2 * 8 + 32 + 8) * 128 * 4


def on_a_gpu(body, index=lambda i: (i,)):
    from jax.experimental.pallas import triton

    spec = pl.BlockSpec((64,), index)
    cost = pl.CostEstimate(flops=0, transcendentals=0, bytes_accessed=256 * 4 + 128)
    call = pl.pallas_call(
        body,
        grid=(4,),
        in_specs=[spec],
        out_specs=pl.BlockSpec((64,), lambda i: (i,)),
        out_shape=array(256),
        cost_estimate=cost,
        compiler_params=triton.CompilerParams(),
    )
    (found,) = inspect_program(capture(call, (array(256),)), targets=[])
    return found.bytes.moved, {each.code for each in found.findings}


def test_on_a_gpu_loads_decide_what_moves():
    def part(x_ref, out_ref):
        out_ref[...] = jnp.broadcast_to(x_ref[pl.ds(0, 8)].sum(), out_ref.shape)

    def twice(x_ref, out_ref):
        out_ref[...] = x_ref[...] + x_ref[...][::-1]

    assert on_a_gpu(part) == (None, set())
    assert on_a_gpu(twice) == (None, set())
    assert on_a_gpu(copied, lambda i: (0,)) == (None, set())
    assert on_a_gpu(copied) == (2 * 256 * 4, {"cost-estimate-false"})
