"""What a record says of a kernel without running it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from kernel_audit.program import capture

X = jax.ShapeDtypeStruct((16, 128), jnp.float32)
BLOCK = pl.BlockSpec((8, 128), lambda i: (i, 0))
ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)


def kernel_of(body, *, blocked=True, **options):
    """The record of a kernel with two operands and one result."""
    spec = BLOCK if blocked else ANYWHERE

    def candidate(x, y):
        return pl.pallas_call(
            body,
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            grid=(2,) if blocked else (),
            in_specs=[spec, spec],
            out_specs=spec,
            **options,
        )(x, y)

    (kernel,) = capture(candidate, (X, X)).kernels
    return kernel


def honest(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] + y_ref[...]


def stores(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...]
    y_ref[...] = jnp.zeros_like(y_ref)


def accumulates(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...]
    x_ref[0, :] += y_ref[0, :]


def stores_when(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...]

    @pl.when(pl.program_id(0) == 1)
    def _():
        y_ref[...] = x_ref[...]


def stores_in_loop(x_ref, y_ref, o_ref):
    def step(i, carry):
        x_ref[i, :] = y_ref[i, :]
        return carry

    jax.lax.fori_loop(0, 8, step, 0)
    o_ref[...] = x_ref[...]


def stores_in_while(x_ref, y_ref, o_ref):
    def step(i):
        x_ref[i, :] = y_ref[i, :]
        return i + 1

    jax.lax.while_loop(lambda i: i < jnp.int32(x_ref[0, 0]), step, 0)
    o_ref[...] = x_ref[...]


def stores_in_scope(x_ref, y_ref, o_ref):
    def scope(buffer_ref):
        buffer_ref[...] = x_ref[...]
        y_ref[...] = buffer_ref[...]
        o_ref[...] = buffer_ref[...]

    pl.run_scoped(scope, pltpu.VMEM((8, 128), jnp.float32))


@pytest.mark.parametrize(
    ("body", "written"),
    [
        (honest, []),
        (stores, [1]),
        (accumulates, [0]),
        (stores_when, [1]),
        (stores_in_loop, [0]),
        (stores_in_while, [0]),
        (stores_in_scope, [1]),
    ],
)
def test_operands_that_a_body_stores_to(body, written):
    assert kernel_of(body).written_inputs == written


def test_an_aliased_operand_may_be_stored_to():
    assert kernel_of(stores, input_output_aliases={1: 0}).written_inputs == []
    assert kernel_of(accumulates, input_output_aliases={1: 0}).written_inputs == [0]


def pipeline(block):
    def body(x_ref, y_ref, o_ref):
        pltpu.emit_pipeline(block, grid=(2,), in_specs=[BLOCK, BLOCK], out_specs=[BLOCK])(x_ref, y_ref, o_ref)

    return body


def copies_into_operand(x_ref, y_ref, o_ref):
    def scope(buffer_ref):
        pltpu.sync_copy(x_ref, buffer_ref)
        pltpu.sync_copy(buffer_ref.at[pl.ds(0, 8)], y_ref.at[pl.ds(8, 8)])
        pltpu.sync_copy(buffer_ref, o_ref)

    pl.run_scoped(scope, pltpu.VMEM((16, 128), jnp.float32))


def test_a_pipeline_stages_its_operands_and_writes_none():
    kernel = kernel_of(pipeline(honest), blocked=False)
    assert kernel.written_inputs == []
    buffers = [shape for shape in kernel.allocations if len(shape) == 3]
    assert buffers == [[2, 8, 128]] * 3


def test_a_copy_into_an_operand_counts():
    kernel = kernel_of(copies_into_operand, blocked=False)
    assert kernel.written_inputs == [1]
    assert kernel.allocations == [[16, 128]]


def test_a_pipeline_that_writes_back_to_its_operand_counts():
    def body(x_ref, y_ref, o_ref):
        def block(block_x_ref, block_y_ref):
            block_y_ref[...] = block_x_ref[...]

        pltpu.emit_pipeline(block, grid=(2,), in_specs=[BLOCK], out_specs=[BLOCK])(x_ref, y_ref)
        pltpu.sync_copy(x_ref, o_ref)

    assert kernel_of(body, blocked=False).written_inputs == [1]


def test_scratch_buffers_are_allocations_and_semaphores_are_not():
    def body(x_ref, y_ref, o_ref, scratch_ref, semaphore_ref):
        o_ref[...] = x_ref[...] + y_ref[...]

    scratch = [pltpu.VMEM((4, 128), jnp.float32), pltpu.SemaphoreType.DMA((2,))]
    kernel = kernel_of(body, scratch_shapes=scratch)
    assert kernel.allocations == [[4, 128]]
    assert kernel.written_inputs == []


def test_grid_blocks_name_and_path(captured):
    (kernel,) = captured("scan").program.kernels
    assert (kernel.grid, kernel.blocks) == ([2], [[8, 128], [8, 128]])
    assert kernel.path.startswith("scan/pallas_call#")
    assert kernel.name == "_double_body"
    assert kernel_of(honest, name="axpy").name == "axpy"


def test_prefetched_scalars_are_not_counted_among_the_operands():
    def body(order_ref, x_ref, o_ref):
        order_ref[0] = 0
        x_ref[...] = jnp.zeros_like(x_ref)
        o_ref[...] = x_ref[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(2,),
        in_specs=[pl.BlockSpec((None, 128), lambda i, order: (order[i], 0))],
        out_specs=pl.BlockSpec((None, 128), lambda i, order: (i, 0)),
    )

    def candidate(order, x, **options):
        call = pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid_spec=spec, **options)
        return call(order, x)

    order = jax.ShapeDtypeStruct((2,), jnp.int32)
    (kernel,) = capture(candidate, (order, X)).kernels
    assert kernel.written_inputs == [0]
    assert kernel.blocks == [[1, 128], [1, 128]]
    (aliased,) = capture(candidate, (order, X), keywords={"input_output_aliases": {1: 0}}).kernels
    assert aliased.written_inputs == []


@pytest.mark.parametrize(
    ("name", "text"),
    [("plain", "False"), ("asks-backend", "True"), ("author-chose-interpreter", "InterpretParams")],
)
def test_what_the_author_asked_for(captured, name, text):
    assert captured(name).program.kernels[0].authored_interpret == text


def test_a_program_without_a_kernel_has_none():
    assert capture(jnp.sin, (X,)).kernels == []


def test_pl_kernel_is_described(captured):
    (kernel,) = captured("pl-kernel").program.kernels
    assert kernel.primitive in ("core_map", "mpmd_map")
    assert kernel.grid == [1]
    assert kernel.allocations == [[16, 128], [16, 128]]
    assert kernel.written_inputs == []


def test_the_record_says_what_was_captured(captured):
    program = captured("donated").program
    record = program.record(
        key="k", side="candidate", configuration={"bm": 8}, mode={}, exports={"generic": "sha256:0"}
    )
    assert (record.digest, record.donated, record.kernels) == (program.digest, [0], program.kernels)
    assert (record.jax_version, record.simulated_device) == (jax.__version__, "TPU v5 lite")
    assert record.operands == record.results == ["float32[16,128]"]
