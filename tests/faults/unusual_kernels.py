"""More kernels with one static fault, and more correct ones that look as if they had one. See static_kernels.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from static_kernels import F32, Made, array, call, double, rows

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


FAULTS: dict[str, tuple[Callable[[], Made], str]] = {
    "offset used after a division": (offset_used_after_a_division, "offset-overflow"),
    "pipeline that comes back": (pipeline_that_comes_back, "block-revisited"),
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
    "nothing to write": nothing_to_write,
}
