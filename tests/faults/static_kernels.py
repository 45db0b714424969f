"""Kernels with one fault that can be seen before anything runs, and correct ones that look as if they had one.

Each is (function, operands); a name in FAULTS maps to the code that must be found, in HONEST to why nothing may be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

F32, BF16, I32 = jnp.float32, jnp.bfloat16, jnp.int32
Made = tuple[Callable[..., Any], list[jax.ShapeDtypeStruct]]


def array(*shape: int, dtype: Any = F32) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def double(x_ref, out_ref) -> None:
    out_ref[...] = x_ref[...] * 2.0


def rows(block: int = 8, index: Callable[..., Any] = lambda i: (i, 0), width: int = 128, **more: Any) -> pl.BlockSpec:
    return pl.BlockSpec((block, width), index, **more)


def call(body: Any, out: Any, *, semantics: Any = None, vmem: int | None = None, **more: Any) -> Callable[..., Any]:
    options = (
        {}
        if semantics is None and vmem is None
        else {"compiler_params": pltpu.CompilerParams(dimension_semantics=semantics, vmem_limit_bytes=vmem)}
    )
    return pl.pallas_call(body, out_shape=out, **options, **more)


# ---------------------------------------------------------------- faults


def uncovered_block() -> Made:
    return call(double, array(32, 128), grid=(3,), in_specs=[rows()], out_specs=rows()), [array(32, 128)]


def uncovered_tail() -> Made:
    return call(double, array(30, 128), grid=(30 // 8,), in_specs=[rows()], out_specs=rows()), [array(30, 128)]


def revisited_in_a_second_pass() -> Made:
    spec = rows(index=lambda p, i: (i, 0))
    return call(double, array(32, 128), grid=(2, 4), in_specs=[spec], out_specs=spec), [array(32, 128)]


def index_in_elements() -> Made:
    return (
        call(double, array(32, 128), grid=(4,), in_specs=[rows(index=lambda i: (i * 8, 0))], out_specs=rows()),
        [array(32, 128)],
    )


def operand_one_block_late() -> Made:
    return (
        call(double, array(32, 128), grid=(4,), in_specs=[rows(index=lambda i: (i + 1, 0))], out_specs=rows()),
        [array(32, 128)],
    )


def parallel_programs_share_a_block() -> Made:
    out = rows(index=lambda i: (i // 2, 0))
    return (
        call(double, array(16, 128), grid=(4,), in_specs=[rows()], out_specs=out, semantics=("parallel",)),
        [array(32, 128)],
    )


def too_large_for_vector_memory() -> Made:
    spec = rows(block=32768, width=1024)
    return call(double, array(65536, 1024), grid=(2,), in_specs=[spec], out_specs=spec), [array(65536, 1024)]


def more_than_its_own_limit() -> Made:
    spec = rows(block=1024, width=1024)
    return (
        call(double, array(4096, 1024), grid=(4,), in_specs=[spec], out_specs=spec, vmem=1 << 20),
        [array(4096, 1024)],
    )


def misaligned_block() -> Made:
    spec = pl.BlockSpec((8, 100), lambda i: (0, i))
    return call(double, array(8, 300), grid=(3,), in_specs=[spec], out_specs=spec), [array(8, 300)]


def sorts_on_a_tpu() -> Made:
    def body(x_ref, out_ref) -> None:
        out_ref[...] = jnp.sort(x_ref[...], axis=-1)

    return call(body, array(8, 128)), [array(8, 128)]


def cumulates_on_a_tpu() -> Made:
    def body(x_ref, out_ref) -> None:
        out_ref[...] = lax.cumsum(x_ref[...], axis=1)

    return call(body, array(8, 128)), [array(8, 128)]


def reverses_on_a_tpu() -> Made:
    def body(x_ref, out_ref) -> None:
        out_ref[...] = lax.rev(x_ref[...], (0,))

    return call(body, array(8, 128)), [array(8, 128)]


def claims_a_tenth_of_its_bytes() -> Made:
    cost = pl.CostEstimate(flops=0, transcendentals=0, bytes_accessed=32 * 128 * 4 * 2 // 10)
    return (
        call(double, array(32, 128), grid=(4,), in_specs=[rows()], out_specs=rows(), cost_estimate=cost),
        [array(32, 128)],
    )


def _added(x_ref, out_ref) -> None:
    out_ref[...] += x_ref[...]


def result_added_to_without_start() -> Made:
    out = rows(index=lambda i: (0, 0))
    return call(_added, array(8, 128), grid=(4,), in_specs=[rows()], out_specs=out), [array(32, 128)]


def scratch_added_to_without_start() -> Made:
    def body(x_ref, out_ref, sum_ref) -> None:
        sum_ref[...] += x_ref[...]

        @pl.when(pl.program_id(0) == 3)
        def _() -> None:
            out_ref[...] = sum_ref[...]

    scratch = [pltpu.VMEM((8, 128), F32)]
    out = rows(index=lambda i: (0, 0))
    return (
        call(body, array(8, 128), grid=(4,), in_specs=[rows()], out_specs=out, scratch_shapes=scratch),
        [array(32, 128)],
    )


def _started(x_ref, out_ref) -> None:
    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        out_ref[...] = jnp.zeros_like(out_ref)

    out_ref[...] += x_ref[...].astype(out_ref.dtype)


def sum_in_bfloat16() -> Made:
    out = rows(index=lambda i: (0, 0), block=16)
    spec = rows(block=16)
    return (
        call(_started, array(16, 128, dtype=BF16), grid=(4,), in_specs=[spec], out_specs=out),
        [array(64, 128)],
    )


def operand_nobody_reads() -> Made:
    def body(x_ref, y_ref, out_ref) -> None:
        out_ref[...] = x_ref[...] * 2.0

    return (
        call(body, array(32, 128), grid=(4,), in_specs=[rows(), rows()], out_specs=rows()),
        [array(32, 128), array(32, 128)],
    )


def result_nobody_writes() -> Made:
    def body(x_ref, out_ref, other_ref) -> None:
        out_ref[...] = x_ref[...]

    return (
        call(body, [array(32, 128)] * 2, grid=(4,), in_specs=[rows()], out_specs=[rows(), rows()]),
        [array(32, 128)],
    )


def offset_beyond_32_bits() -> Made:
    def body(x_ref, out_ref) -> None:
        first = pl.program_id(0) * (1 << 24)
        out_ref[...] = jnp.broadcast_to(x_ref[pl.ds(first, 1), :], out_ref.shape)

    return (
        call(body, array(8 * 256, 128), grid=(256,), in_specs=[rows()], out_specs=rows()),
        [array(8 * 256, 128)],
    )


def product_below_the_contract() -> Made:
    def body(x_ref, y_ref, out_ref) -> None:
        out_ref[...] = jnp.dot(x_ref[...], y_ref[...], preferred_element_type=F32)

    return call(body, array(128, 128)), [array(128, 128), array(128, 128)]


def sum_below_the_contract() -> Made:
    def body(x_ref, y_ref, out_ref) -> None:
        out_ref[...] = x_ref[...] + y_ref[...]

    return call(body, array(16, 128, dtype=BF16)), [array(16, 128, dtype=BF16)] * 2


FAULTS: dict[str, tuple[Callable[[], Made], str]] = {
    "uncovered block": (uncovered_block, "block-uncovered"),
    "uncovered tail": (uncovered_tail, "block-uncovered"),
    "revisited in a second pass": (revisited_in_a_second_pass, "block-revisited"),
    "index in elements": (index_in_elements, "block-index-in-elements"),
    "operand one block late": (operand_one_block_late, "block-out-of-range"),
    "parallel programs share a block": (parallel_programs_share_a_block, "parallel-axis-shared"),
    "too large for vector memory": (too_large_for_vector_memory, "vmem-over-use"),
    "more than its own limit": (more_than_its_own_limit, "vmem-over-use"),
    "misaligned block": (misaligned_block, "block-misaligned"),
    "sort": (sorts_on_a_tpu, "primitive-unsupported"),
    "cumsum": (cumulates_on_a_tpu, "primitive-unsupported"),
    "rev": (reverses_on_a_tpu, "primitive-unsupported"),
    "false cost estimate": (claims_a_tenth_of_its_bytes, "cost-estimate-false"),
    "result added to without start": (result_added_to_without_start, "accumulator-uninitialised"),
    "scratch added to without start": (scratch_added_to_without_start, "accumulator-uninitialised"),
    "sum in bfloat16": (sum_in_bfloat16, "accumulator-narrow"),
    "operand nobody reads": (operand_nobody_reads, "operand-unread"),
    "result nobody writes": (result_nobody_writes, "result-unwritten"),
    "offset beyond 32 bits": (offset_beyond_32_bits, "offset-overflow"),
    "product below the contract": (product_below_the_contract, "precision-below-contract"),
    "sum below the contract": (sum_below_the_contract, "precision-below-contract"),
}
# What follows from the same fault and is said, too: adding up in bfloat16 is below a float32 contract.
BESIDE = {"sum in bfloat16": {"precision-below-contract"}}


# ---------------------------------------------------------------- correct, and unusual


def halo_by_clamped_neighbours() -> Made:
    def body(above_ref, x_ref, below_ref, out_ref) -> None:
        out_ref[...] = x_ref[...] + above_ref[...] + below_ref[...]

    specs = [
        rows(index=lambda i: (jnp.maximum(i - 1, 0), 0)),
        rows(),
        rows(index=lambda i: (jnp.minimum(i + 1, 3), 0)),
    ]

    def f(x):
        return call(body, array(32, 128), grid=(4,), in_specs=specs, out_specs=rows())(x, x, x)

    return f, [array(32, 128)]


def halo_by_elements() -> Made:
    def body(x_ref, out_ref) -> None:
        out_ref[...] = x_ref[:8] + x_ref[8:]

    spec = pl.BlockSpec((pl.Element(16, (0, 8)), pl.Element(128)), lambda i: (i * 8, 0))
    return call(body, array(32, 128), grid=(4,), in_specs=[spec], out_specs=rows()), [array(32, 128)]


def sum_over_the_last_axis() -> Made:
    out = rows(index=lambda i: (0, 0))
    return call(_started, array(8, 128), grid=(4,), in_specs=[rows()], out_specs=out), [array(32, 128)]


def product_in_scratch() -> Made:
    def body(x_ref, y_ref, out_ref, sum_ref) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            sum_ref[...] = jnp.zeros_like(sum_ref)

        sum_ref[...] += jnp.dot(x_ref[...], y_ref[...], precision="highest", preferred_element_type=F32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _() -> None:
            out_ref[...] = sum_ref[...].astype(out_ref.dtype)

    specs = [pl.BlockSpec((128, 128), lambda i, j, k: (i, k)), pl.BlockSpec((128, 128), lambda i, j, k: (k, j))]
    return (
        call(
            body,
            array(256, 256, dtype=BF16),
            grid=(2, 2, 4),
            in_specs=specs,
            out_specs=pl.BlockSpec((128, 128), lambda i, j, k: (i, j)),
            scratch_shapes=[pltpu.VMEM((128, 128), F32)],
            semantics=("parallel", "parallel", "arbitrary"),
        ),
        [array(256, 512), array(512, 256)],
    )


def rows_by_a_table() -> Made:
    def body(_table, x_ref, out_ref) -> None:
        out_ref[...] = x_ref[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[rows(index=lambda i, table: (table[i], 0))],
        out_specs=rows(index=lambda i, table: (i, 0)),
    )
    return pl.pallas_call(body, grid_spec=spec, out_shape=array(32, 128)), [array(4, dtype=I32), array(32, 128)]


def scattered_by_a_table() -> Made:
    def body(_table, x_ref, out_ref) -> None:
        out_ref[...] = x_ref[...]

    spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[rows(index=lambda i, table: (i, 0))],
        out_specs=rows(index=lambda i, table: (table[i], 0)),
    )
    return pl.pallas_call(body, grid_spec=spec, out_shape=array(32, 128)), [array(4, dtype=I32), array(32, 128)]


def permuted_by_a_constant_table() -> Made:
    made, _ = scattered_by_a_table()
    return (lambda x: made(jnp.asarray(np.array([2, 0, 3, 1], np.int32)), x)), [array(32, 128)]


def half_of_the_blocks_in_place() -> Made:
    return (
        call(
            double,
            array(32, 128),
            grid=(2,),
            in_specs=[rows(index=lambda i: (2 * i, 0))],
            out_specs=rows(index=lambda i: (2 * i, 0)),
            input_output_aliases={0: 0},
        ),
        [array(32, 128)],
    )


def halves_of_a_block() -> Made:
    def body(x_ref, out_ref) -> None:
        out_ref[:4] = x_ref[:4] * 2.0
        out_ref[4:] = x_ref[4:] + 1.0

    return call(body, array(32, 128), grid=(4,), in_specs=[rows()], out_specs=rows()), [array(32, 128)]


def blocks_backwards() -> Made:
    back = rows(index=lambda i: (3 - i, 0))
    return call(double, array(32, 128), grid=(4,), in_specs=[back], out_specs=back), [array(32, 128)]


def squeezed_dimension() -> Made:
    spec = pl.BlockSpec((None, 8, 128), lambda b, i: (b, i, 0))
    return call(double, array(3, 32, 128), grid=(3, 4), in_specs=[spec], out_specs=spec), [array(3, 32, 128)]


def started_by_a_choice() -> Made:
    def body(x_ref, out_ref, last_ref) -> None:
        before = jnp.where(pl.program_id(0) == 0, 0.0, last_ref[...])
        last_ref[...] = before + x_ref[...]
        out_ref[...] = last_ref[...]

    scratch = [pltpu.VMEM((8, 128), F32)]
    return (
        call(body, array(32, 128), grid=(4,), in_specs=[rows()], out_specs=rows(), scratch_shapes=scratch),
        [array(32, 128)],
    )


def added_to_an_aliased_operand() -> Made:
    def body(x_ref, _sum_ref, out_ref) -> None:
        out_ref[...] += x_ref[...]

    return (
        call(
            body,
            array(32, 128),
            grid=(4,),
            in_specs=[rows(), rows()],
            out_specs=rows(),
            input_output_aliases={1: 0},
        ),
        [array(32, 128), array(32, 128)],
    )


def uneven_tails() -> Made:
    spec = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    return call(double, array(30, 200), grid=(4, 2), in_specs=[spec], out_specs=spec), [array(30, 200)]


def honest_estimate_of_clipped_tails() -> Made:
    spec = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    cost = pl.CostEstimate(flops=30 * 200, transcendentals=0, bytes_accessed=2 * 30 * 200 * 4)
    return (
        call(double, array(30, 200), grid=(4, 2), in_specs=[spec], out_specs=spec, cost_estimate=cost),
        [array(30, 200)],
    )


def only_the_last_program_writes() -> Made:
    def body(x_ref, out_ref, best_ref) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            best_ref[...] = jnp.full_like(best_ref, -jnp.inf)

        best_ref[...] = jnp.maximum(best_ref[...], x_ref[...])

        @pl.when(pl.program_id(0) == 3)
        def _() -> None:
            out_ref[...] = best_ref[...]

    out = rows(index=lambda i: (0, 0))
    scratch = [pltpu.VMEM((8, 128), F32)]
    return (
        call(body, array(8, 128), grid=(4,), in_specs=[rows()], out_specs=out, scratch_shapes=scratch),
        [array(32, 128)],
    )


def pipeline_that_adds_up() -> Made:
    def inner(x_ref, out_ref) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            out_ref[...] = jnp.zeros_like(out_ref)

        out_ref[...] += x_ref[...]

    def body(x_ref, out_ref) -> None:
        pltpu.emit_pipeline(inner, grid=(4,), in_specs=[rows()], out_specs=[rows(index=lambda i: (0, 0))])(
            x_ref, out_ref
        )

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    return call(body, array(8, 128), in_specs=[anywhere], out_specs=anywhere), [array(32, 128)]


def copied_by_hand() -> Made:
    def body(x_ref, out_ref, staged_ref, done) -> None:
        first = pltpu.make_async_copy(x_ref, staged_ref, done)
        first.start()
        first.wait()
        staged_ref[...] = staged_ref[...] * 2.0
        second = pltpu.make_async_copy(staged_ref, out_ref, done)
        second.start()
        second.wait()

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    scratch = [pltpu.VMEM((8, 128), F32), pltpu.SemaphoreType.DMA]
    return (
        call(body, array(8, 128), in_specs=[anywhere], out_specs=anywhere, scratch_shapes=scratch),
        [array(8, 128)],
    )


def kernel_in_a_loop() -> Made:
    made = call(double, array(32, 128), grid=(4,), in_specs=[rows()], out_specs=rows())
    return (lambda x: lax.fori_loop(0, 5, lambda _, carried: made(carried), x)), [array(32, 128)]


HONEST: dict[str, Callable[[], Made]] = {
    "halo by clamped neighbours": halo_by_clamped_neighbours,
    "halo by elements": halo_by_elements,
    "sum over the last axis": sum_over_the_last_axis,
    "product in scratch": product_in_scratch,
    "rows by a table": rows_by_a_table,
    "scattered by a table": scattered_by_a_table,
    "permuted by a constant table": permuted_by_a_constant_table,
    "half of the blocks in place": half_of_the_blocks_in_place,
    "halves of a block": halves_of_a_block,
    "blocks backwards": blocks_backwards,
    "squeezed dimension": squeezed_dimension,
    "started by a choice": started_by_a_choice,
    "added to an aliased operand": added_to_an_aliased_operand,
    "uneven tails": uneven_tails,
    "honest estimate of clipped tails": honest_estimate_of_clipped_tails,
    "only the last program writes": only_the_last_program_writes,
    "pipeline that adds up": pipeline_that_adds_up,
    "copied by hand": copied_by_hand,
    "kernel in a loop": kernel_in_a_loop,
}
