"""More kernels with one static fault, and more correct ones that look as if they had one. See static_kernels.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from static_kernels import BF16, F32, Made, array, call, double, rows

ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)
U32 = jnp.uint32


# ---------------------------------------------------------------- offsets


def scaled_by(value_of: Callable[[Any], Any], programs: int = 4) -> Made:
    """A kernel that multiplies with a number made of its program's index."""

    def body(x_ref, out_ref) -> None:
        out_ref[...] = x_ref[...] * value_of(pl.program_id(0)).astype(F32)

    shape = array(8 * programs, 128)
    return call(body, shape, grid=(programs,), in_specs=[rows()], out_specs=rows()), [shape]


def hash_of_the_program() -> Made:
    return scaled_by(lambda i: i.astype(U32) * U32(2654435761))


def seed_of_the_program() -> Made:
    return scaled_by(lambda i: i * jnp.int32(1103515245) + 12345)


def low_bits_of_the_program() -> Made:
    return scaled_by(lambda i: i.astype(jnp.uint8), programs=300)


def row_by_a_hash() -> Made:
    def body(x_ref, out_ref) -> None:
        row = (pl.program_id(0) * jnp.int32(1103515245) + 12345) & 7
        out_ref[...] = jnp.broadcast_to(x_ref[pl.ds(row, 1), :], out_ref.shape)

    return call(body, array(32, 128), grid=(4,), in_specs=[rows()], out_specs=rows()), [array(32, 128)]


def offset_that_wraps_twice() -> Made:
    """2^30 i - (2^30 - 1) i is i, whatever is between."""

    def body(x_ref, out_ref) -> None:
        i = pl.program_id(0)
        row = i * (1 << 30) - i * ((1 << 30) - 1)
        out_ref[...] = jnp.broadcast_to(x_ref[pl.ds(row, 1), :], out_ref.shape)

    return call(body, array(64, 128), grid=(8,), in_specs=[rows(index=lambda i: (0, 0))], out_specs=rows()), [
        array(64, 128)
    ]


def offset_used_after_a_division() -> Made:
    def body(x_ref, out_ref) -> None:
        row = lax.div(pl.program_id(0) * (1 << 24), jnp.int32(1 << 24))
        out_ref[...] = jnp.broadcast_to(x_ref[pl.ds(row, 1), :], out_ref.shape)

    whole = rows(block=256, index=lambda i: (0, 0))
    return call(body, array(2048, 128), grid=(256,), in_specs=[whole], out_specs=rows()), [array(256, 128)]


# ---------------------------------------------------------------- copies


def copy(source: Any, target: Any, done: Any) -> None:
    made = pltpu.make_async_copy(source, target, done)
    made.start()
    made.wait()


def copying(body: Callable[..., None], out: Any = None, scratch: Any = None) -> Made:
    """A kernel of one program with its operand and result in main memory, a block of scratch, and a semaphore."""
    scratch = [pltpu.VMEM((8, 128), F32), pltpu.SemaphoreType.DMA] if scratch is None else scratch
    made = call(body, out or array(32, 128), in_specs=[ANYWHERE], out_specs=ANYWHERE, scratch_shapes=scratch)
    return made, [array(32, 128)]


def zeroed_then_added_to_by_copies() -> Made:
    def body(x_ref, out_ref, staged_ref, done) -> None:
        staged_ref[...] = jnp.zeros_like(staged_ref)
        for i in range(4):
            copy(staged_ref, out_ref.at[pl.ds(8 * i, 8)], done)
        for i in range(4):
            copy(out_ref.at[pl.ds(8 * i, 8)], staged_ref, done)
            staged_ref[...] = staged_ref[...] + jnp.float32(i)
            copy(staged_ref, out_ref.at[pl.ds(8 * i, 8)], done)
        copy(x_ref.at[pl.ds(0, 8)], staged_ref, done)

    return copying(body)


def two_pipelines_in_a_row() -> Made:
    def inner(x_ref, out_ref) -> None:
        out_ref[...] = x_ref[...] * 2.0

    def body(x_ref, out_ref) -> None:
        pipeline = pltpu.emit_pipeline(inner, grid=(4,), in_specs=[rows()], out_specs=[rows()])
        pipeline(x_ref, out_ref)
        pipeline(x_ref, out_ref)

    return copying(body, scratch=[])


def pipeline_that_comes_back() -> Made:
    def inner(x_ref, out_ref) -> None:
        out_ref[...] = x_ref[...] * 2.0

    def body(x_ref, out_ref) -> None:
        spec = rows(index=lambda p, i: (i, 0))
        pltpu.emit_pipeline(inner, grid=(2, 4), in_specs=[spec], out_specs=[spec])(x_ref, out_ref)

    return copying(body, scratch=[])


def result_that_is_only_read() -> Made:
    def body(x_ref, out_ref, staged_ref, done) -> None:
        copy(x_ref.at[pl.ds(0, 8)], staged_ref, done)
        copy(out_ref.at[pl.ds(0, 8)], staged_ref, done)

    return copying(body, array(8, 128))


def nothing_to_write() -> Made:
    return call(double, array(0, 128)), [array(0, 128)]


# ---------------------------------------------------------------- results


def padded_result_that_is_cropped() -> Made:
    made = call(double, array(64, 128), grid=(2,), in_specs=[rows()], out_specs=rows())
    return (lambda x: made(x)[:16]), [array(16, 128)]


def same_value_along_a_parallel_axis() -> Made:
    spec = rows(index=lambda i, j: (i, 0))
    options = ("parallel", "parallel")
    return call(
        double,
        array(32, 128),
        grid=(4, 2),
        in_specs=[spec],
        out_specs=rows(index=lambda i, j: (i, 0)),
        semantics=options,
    ), [array(32, 128)]


def added_along_a_parallel_axis() -> Made:
    def body(x_ref, out_ref) -> None:
        @pl.when(pl.program_id(1) == 0)
        def _() -> None:
            out_ref[...] = jnp.zeros_like(out_ref)

        out_ref[...] += x_ref[...]

    spec = rows(index=lambda i, j: (i, 0))
    made = call(body, array(32, 128), grid=(4, 2), in_specs=[spec], out_specs=spec, semantics=("arbitrary", "parallel"))
    return made, [array(32, 128)]


# ---------------------------------------------------------------- sums in 16 bits, without float32 in the contract


def narrow(body: Callable[..., None], *, programs: int = 4, scratch: bool = False) -> Made:
    """A kernel of bfloat16 blocks of which every program writes the same result."""
    shape, out = array(16 * programs, 128, dtype=BF16), rows(block=16, index=lambda i: (0, 0))
    more = {"scratch_shapes": [pltpu.VMEM((16, 128), BF16)]} if scratch else {}
    made = call(
        body, array(16, 128, dtype=BF16), grid=(programs,), in_specs=[rows(block=16)] * 2, out_specs=out, **more
    )
    return made, [shape, shape]


def scratch_refilled_by_every_program() -> Made:
    def body(x_ref, y_ref, out_ref, kept_ref) -> None:
        kept_ref[...] = x_ref[...]
        kept_ref[...] = kept_ref[...] + y_ref[...]
        out_ref[...] = kept_ref[...]

    return narrow(body, scratch=True)


def result_refilled_by_every_program() -> Made:
    def body(x_ref, y_ref, out_ref) -> None:
        out_ref[:8] = x_ref[:8]
        out_ref[8:] = x_ref[8:]
        out_ref[...] = out_ref[...] + y_ref[...]

    return narrow(body)


def rows_added_to_once_each() -> Made:
    def body(x_ref, y_ref, out_ref) -> None:
        out_ref[...] = x_ref[...]

        def step(i, _):
            out_ref[pl.ds(i, 1)] = out_ref[pl.ds(i, 1)] + y_ref[pl.ds(i, 1)]

        lax.fori_loop(0, 16, step, None)

    return narrow(body)


def refilled_in_every_step() -> Made:
    def body(x_ref, y_ref, out_ref, kept_ref) -> None:
        def step(i, _):
            kept_ref[...] = x_ref[...]
            kept_ref[...] = kept_ref[...] + y_ref[...]

        lax.fori_loop(0, 4, step, None)
        out_ref[...] = kept_ref[...]

    return narrow(body, scratch=True)


def added_to_in_every_step() -> Made:
    def body(x_ref, y_ref, out_ref) -> None:
        out_ref[...] = x_ref[...]

        def step(i, _):
            out_ref[...] = out_ref[...] + y_ref[...]

        lax.fori_loop(0, 4, step, None)

    return narrow(body, programs=1)


def rows_added_to_again_and_again() -> Made:
    def body(x_ref, y_ref, out_ref) -> None:
        out_ref[...] = x_ref[...]

        def row(i, _):
            out_ref[pl.ds(i, 1)] = out_ref[pl.ds(i, 1)] + y_ref[pl.ds(i, 1)]

        lax.fori_loop(0, 4, lambda _, none: lax.fori_loop(0, 16, row, none), None)

    return narrow(body, programs=1)


NARROW = {
    "scratch refilled by every program": (scratch_refilled_by_every_program, False),
    "result refilled by every program": (result_refilled_by_every_program, False),
    "rows added to once each": (rows_added_to_once_each, False),
    "refilled in every step": (refilled_in_every_step, False),
    "added to in every step": (added_to_in_every_step, True),
    "rows added to again and again": (rows_added_to_again_and_again, True),
}
# ---------------------------------------------------------------- products that round nothing, and others


def product_of(make: Callable[..., Any], dtype: Any = F32, out: Any = F32) -> Made:
    def body(x_ref, y_ref, out_ref) -> None:
        out_ref[...] = make(x_ref[...], y_ref[...]).astype(out)

    return call(body, array(128, 128, dtype=out)), [array(128, 128, dtype=dtype)] * 2


def one_hot(x: Any, dtype: Any = F32) -> Any:
    first = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    return (first == 3).astype(dtype)


def product_of_widened_operands() -> Made:
    return product_of(lambda x, y: jnp.dot(x.astype(F32), y.T.astype(F32)), BF16)


def product_with_a_one_hot() -> Made:
    return product_of(lambda x, y: jnp.dot(one_hot(x), jnp.where(x > 0, 1.0, 0.0).astype(F32)) + 0 * y)


def masked_in_bfloat16() -> Made:
    return product_of(lambda x, y: x.astype(BF16) * (y > 0).astype(BF16))


def masked_by_an_operand() -> Made:
    return product_of(lambda x, mask: x * mask, BF16)


def gathered_in_bfloat16() -> Made:
    return product_of(lambda x, y: jnp.dot(one_hot(x, BF16), y, preferred_element_type=BF16) * (x > 0), BF16)


def selected_by_masks() -> Made:
    def select(x, y):
        mask = one_hot(x, BF16)
        return x * mask + y * (1 - mask)

    return product_of(select, BF16)


def product_of_a_widened_operand_and_another() -> Made:
    return product_of(lambda x, y: jnp.dot(x.astype(BF16).astype(F32), jnp.exp(y)))


def square_in_bfloat16() -> Made:
    return product_of(lambda x, y: x * x + 0 * y.astype(F32), BF16)


def third_in_bfloat16() -> Made:
    return product_of(lambda x, y: x * jnp.bfloat16(0.3) + 0 * y.astype(F32), BF16)


FAULTS: dict[str, tuple[Callable[[], Made], str]] = {
    "offset used after a division": (offset_used_after_a_division, "offset-overflow"),
    "pipeline that comes back": (pipeline_that_comes_back, "block-revisited"),
    "added along a parallel axis": (added_along_a_parallel_axis, "parallel-axis-shared"),
    "product of a widened operand and another": (product_of_a_widened_operand_and_another, "precision-below-contract"),
    "square in bfloat16": (square_in_bfloat16, "precision-below-contract"),
    "third in bfloat16": (third_in_bfloat16, "precision-below-contract"),
    "result that is only read": (result_that_is_only_read, "block-uncovered"),
}
HONEST: dict[str, Callable[[], Made]] = {
    "hash of the program": hash_of_the_program,
    "seed of the program": seed_of_the_program,
    "low bits of the program": low_bits_of_the_program,
    "row by a hash": row_by_a_hash,
    "offset that wraps twice": offset_that_wraps_twice,
    "zeroed, then added to, by copies": zeroed_then_added_to_by_copies,
    "two pipelines in a row": two_pipelines_in_a_row,
    "padded result that is cropped": padded_result_that_is_cropped,
    "same value along a parallel axis": same_value_along_a_parallel_axis,
    "product of widened operands": product_of_widened_operands,
    "product with a one-hot": product_with_a_one_hot,
    "masked in bfloat16": masked_in_bfloat16,
    "masked by an operand": masked_by_an_operand,
    "gathered in bfloat16": gathered_in_bfloat16,
    "selected by masks": selected_by_masks,
    "nothing to write": nothing_to_write,
}
