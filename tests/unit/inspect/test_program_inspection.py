"""Kernels are found wherever they stand, with how often they run, what lies around them, and what they say of themselves."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from kernel_audit.inspect import inspect_program
from kernel_audit.kernels.pipelined_axpy import pipelined_axpy
from kernel_audit.program import capture
from kernel_audit.records import KernelInspection, decode, encode

X = jax.ShapeDtypeStruct((32, 128), jnp.float32)
SPEC = pl.BlockSpec((8, 128), lambda i: (i, 0))


def doubled(x):
    def body(x_ref, out_ref):
        out_ref[...] = x_ref[...] * 2.0

    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return pl.pallas_call(body, grid=(4,), in_specs=[SPEC], out_specs=SPEC, out_shape=out, name="doubled")(x)


@jax.custom_vjp
def ruled(x):
    return doubled(x)


ruled.defvjp(lambda x: (doubled(x), None), lambda _, cotangent: (doubled(cotangent),))


def sharded(x):
    mesh = jax.sharding.AbstractMesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("d")
    return jax.shard_map(doubled, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)(x)


WHERE = {
    "jit": (jax.jit(doubled), 1),
    "scan": (lambda x: lax.scan(lambda c, _: (doubled(c), None), x, None, length=7)[0], 7),
    "nested scans": (
        lambda x: lax.scan(lambda c, _: (lax.fori_loop(0, 3, lambda _, d: doubled(d), c), None), x, None, length=7)[0],
        21,
    ),
    "counted while": (
        lambda x: lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, doubled(s[1])), (0, x))[1],
        5,
    ),
    "while": (lambda x: lax.while_loop(lambda c: c.sum() < 5, doubled, x), None),
    "cond": (lambda x: lax.cond(x.sum() > 0, doubled, lambda x: x, x), 1),
    "custom_vjp": (ruled, 1),
    "remat": (jax.checkpoint(doubled), 1),
    "shard_map": (sharded, 1),
}


@pytest.mark.parametrize("where", WHERE)
def test_a_kernel_is_found_with_its_trips(where: str):
    function, trips = WHERE[where]
    (found,) = inspect_program(capture(function, (X,)), targets=[])
    assert (found.name, found.trips, found.grid, found.ownership.uncovered) == ("doubled", trips, [4], 0)
    assert found.bytes.moved == 2 * 32 * 128 * 4


def test_vmap_adds_an_axis_to_the_grid():
    (found,) = inspect_program(capture(jax.vmap(doubled), (jax.ShapeDtypeStruct((3, 32, 128), jnp.float32),)))
    assert (found.programs, found.ownership.blocks, found.ownership.uncovered) == (12, 12, 0)


def test_the_gradient_holds_its_own_kernels():
    found = inspect_program(capture(jax.grad(lambda x: ruled(x).sum()), (X,)))
    assert len(found) == 2


@pytest.mark.parametrize("keywords", [{}, {"buffers": 3}, {"no_pipelining": True}, {"block": (16, 256)}])
def test_an_emitted_pipeline_has_its_grid_blocks_and_slots_again(keywords: dict):
    operand = jax.ShapeDtypeStruct((257, 513), jnp.float32)
    (found,) = inspect_program(capture(pipelined_axpy, (operand, operand), keywords=keywords))
    block = list(keywords.get("block", (8, 128)))
    grid = [-(-257 // block[0]), -(-513 // block[1])]
    assert (found.grid, found.launch_grid, found.programs) == (grid, [], grid[0] * grid[1])
    assert found.pipelines[0].slots == [keywords.get("buffers", 2)] * 2 + [2]
    assert [each.block for each in found.mappings] == [block] * 3
    assert (found.ownership.uncovered, found.ownership.revisited, found.ownership.proof) == (0, 0, "copies")
    padded = grid[0] * block[0] * grid[1] * block[1]
    assert found.padded_elements == padded and found.padded_share == pytest.approx(1 - 257 * 513 / padded)
    assert found.bytes.moved == 3 * padded * 4
    slots = 2 * keywords.get("buffers", 2) + 2
    assert found.buffer_model_bytes == slots * block[0] * block[1] * 4


def test_a_pipeline_bound_by_its_name_is_seen_too():
    from jax.experimental.pallas.tpu import emit_pipeline

    def body(x_ref, out_ref):
        def inner(x, out):
            out[...] = x[...]

        emit_pipeline(inner, grid=(4,), in_specs=[SPEC], out_specs=[SPEC])(x_ref, out_ref)

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(body, in_specs=[anywhere], out_specs=anywhere, out_shape=X)
    (found,) = inspect_program(capture(call, (X,)))
    assert (found.grid, found.ownership.uncovered) == ([4], 0)


def test_what_lies_around_a_kernel_is_counted_with_its_bytes():
    operand = jax.ShapeDtypeStruct((128, 30), jnp.float32)

    def padded(x):
        return doubled(jnp.pad(x.T, ((0, 2), (0, 0))))[:30]

    (found,) = inspect_program(capture(padded, (operand,)))
    around = [(each.kind, each.side, each.bytes) for each in found.copies_around]
    whole, part = 32 * 128 * 4, 30 * 128 * 4
    assert sorted(around) == [
        ("crop", "result", whole + part),
        ("pad", "operand", whole + part),
        ("transpose", "operand", 2 * part),
    ]
    assert found.padded_share == pytest.approx(1 - 30 / 32)
    assert found.owner_map is not None and (found.owner_map.last_row, found.owner_map.rows_in_last) == (3, 6)


def test_a_column_made_of_a_row_is_a_relayout():
    def body(y_ref, out_ref):
        out_ref[...] = y_ref[...] + jnp.zeros_like(out_ref)

    def kernel(y):
        spec = pl.BlockSpec((8, 1), lambda i: (i, 0))
        return pl.pallas_call(body, grid=(4,), in_specs=[spec], out_specs=SPEC, out_shape=X)(y.reshape(32, 1))

    (found,) = inspect_program(capture(kernel, (jax.ShapeDtypeStruct((32,), jnp.float32),)))
    assert [(each.kind, each.bytes) for each in found.copies_around] == [("relayout", 2 * 32 * 4)]


def test_maps_that_values_drive_are_known_with_the_values():
    def body(_table, x_ref, out_ref):
        out_ref[...] = x_ref[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[pl.BlockSpec((8, 128), lambda i, table: (table[i], 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i, table: (table[i], 0)),
    )
    call = pl.pallas_call(body, grid_spec=spec, out_shape=X)
    program = capture(call, (jax.ShapeDtypeStruct((4,), jnp.int32), X))
    (unknown,) = inspect_program(program)
    assert (unknown.ownership.proof, unknown.ownership.uncovered, unknown.bytes.moved) == ("data-dependent", None, None)
    (known,) = inspect_program(program, values={0: jnp.array([3, 1, 1, 0])})
    assert (known.ownership.proof, known.ownership.uncovered, known.ownership.repeated) == ("enumerated", 1, 1)
    assert known.bytes.moved == 2 * 3 * 8 * 128 * 4
    (constant,) = inspect_program(capture(functools.partial(call, jnp.array([3, 1, 1, 0], jnp.int32)), (X,)))
    assert constant.ownership == known.ownership


def test_a_body_that_decides_by_data_is_not_followed():
    def body(x_ref, out_ref, staged_ref, done):
        @pl.when(jnp.max(staged_ref[...]) > 0)
        def _():
            copy = pltpu.make_async_copy(x_ref, out_ref, done)
            copy.start()
            copy.wait()

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    scratch = [pltpu.VMEM((8, 128), jnp.float32), pltpu.SemaphoreType.DMA]
    call = pl.pallas_call(body, in_specs=[anywhere], out_specs=anywhere, out_shape=X, scratch_shapes=scratch)
    (found,) = inspect_program(capture(call, (X,)))
    assert (found.ownership.proof, found.bytes.moved) == ("data-dependent", None)
    assert found.bytes.derivation == "data-dependent"


def test_casts_products_and_operations_are_in_order():
    def body(x_ref, y_ref, out_ref):
        product = jnp.dot(x_ref[...], y_ref[...], precision="highest", preferred_element_type=jnp.float32)
        out_ref[...] = (product + 1.0).astype(jnp.bfloat16)

    operand, out = jax.ShapeDtypeStruct((128, 128), jnp.bfloat16), jax.ShapeDtypeStruct((128, 128), jnp.bfloat16)
    (found,) = inspect_program(capture(pl.pallas_call(body, out_shape=out), (operand, operand)), targets=["tpu:v5e"])
    assert found.casts == ["float32 -> bfloat16"]
    (product,) = found.dots
    assert (product.left, product.result, product.precision) == ("bfloat16[128,128]", "float32[128,128]", "highest")
    assert found.operations == 2 * 128**3 + 128 * 128
    (fit,) = found.fits
    assert fit.limit_bytes == 128 << 20 and fit.floor_s == pytest.approx(3 * 128 * 128 * 2 / 819e9)
    assert fit.bound_by == "memory" and "819" in fit.source


def test_a_record_survives_its_json():
    (found,) = inspect_program(capture(doubled, (X,)), key="p000")
    assert decode(encode(found), KernelInspection, where="kernels.json") == found
