"""The TPU interpreter's verdicts: races on every JAX version alike, what it refuses, and a clean state afterwards."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import program_specimens as specimens
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from kernel_audit.errors import EnvironmentFault
from kernel_audit.program import Generic, InterpreterRaised, TpuInterpreter, capture, run_simulated

X = specimens.X
ANYWHERE = pl.BlockSpec(memory_space=pl.ANY)


def two_copies_into_one_buffer(x):
    """Two DMAs write one buffer at the same time: a race that only a large vector clock tells."""

    def body(x_ref, o_ref, buffer_ref, semaphores_ref):
        first = pltpu.make_async_copy(x_ref.at[pl.ds(0, 8)], buffer_ref, semaphores_ref.at[0])
        second = pltpu.make_async_copy(x_ref.at[pl.ds(8, 8)], buffer_ref, semaphores_ref.at[1])
        first.start()
        second.start()
        first.wait()
        second.wait()
        pltpu.sync_copy(buffer_ref, o_ref.at[pl.ds(0, 8)])
        pltpu.sync_copy(buffer_ref, o_ref.at[pl.ds(8, 8)])

    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        in_specs=[ANYWHERE],
        out_specs=ANYWHERE,
        scratch_shapes=[pltpu.VMEM((8, 128), x.dtype), pltpu.SemaphoreType.DMA((2,))],
    )(x)


def reads_past_its_block(x):
    def body(x_ref, o_ref):
        o_ref[...] = x_ref[pl.ds(pl.program_id(0) + 4, 8), :]

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    return pl.pallas_call(
        body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), grid=(2,), in_specs=[block], out_specs=block
    )(x)


def simulate(function, **options):
    program = capture(function, (X,))
    return run_simulated(program.executable(TpuInterpreter(**options)), [X])


def found_within(tries: int, function, **options) -> bool:
    """Clock slots are drawn at random, so one run misses a race with probability of about one in their number."""
    return any(simulate(function, **options).races for _ in range(tries))


def test_a_race_is_found():
    assert found_within(2, two_copies_into_one_buffer)


def test_a_race_in_an_earlier_kernel_is_not_forgotten():
    assert found_within(2, lambda x: specimens.doubled(two_copies_into_one_buffer(x)))


def test_the_verdict_belongs_to_one_call():
    assert found_within(2, two_copies_into_one_buffer)
    assert not simulate(specimens.doubled).races


def test_without_race_detection_none_is_found():
    assert not simulate(two_copies_into_one_buffer, detect_races=False).races


def test_what_the_interpreter_refuses_is_named_and_the_next_call_is_clean():
    good = capture(specimens.doubled, (X,)).executable(TpuInterpreter())
    bad = capture(reads_past_its_block, (X,)).executable(TpuInterpreter())
    for _ in range(2):
        with pytest.raises(InterpreterRaised) as caught:
            run_simulated(bad, [X])
        assert caught.value.type_name == "IndexError"
        assert "Out-of-bounds read" in caught.value.message
        assert "/" not in caught.value.message
        assert (np.asarray(run_simulated(good, [X]).outputs[0]) == 2 * X).all()


def test_a_race_is_found_after_an_exception():
    """Without a reset the next kernel would go on in the memory, and with the race state, of the one that failed."""
    bad = capture(reads_past_its_block, (X,)).executable(TpuInterpreter())
    racing = capture(two_copies_into_one_buffer, (X,)).executable(TpuInterpreter())
    verdicts = []
    for _ in range(2):
        with pytest.raises(InterpreterRaised):
            run_simulated(bad, [X])
        verdicts.append(run_simulated(racing, [X]).races)
    assert any(verdicts)


def test_unwritten_memory_is_poisoned_or_zero_as_asked():
    def writes_nothing(x):
        def body(x_ref, o_ref):
            pass

        return pl.pallas_call(body, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x)

    assert np.isnan(simulate(writes_nothing).outputs[0]).all()
    assert (np.asarray(simulate(writes_nothing, uninitialized_memory="zero").outputs[0]) == 0).all()


def test_each_described_core_and_copy_mode_runs():
    for options in ({"num_cores": 2}, {"dma_execution_mode": "eager"}, {"random_seed": 5}):
        assert (np.asarray(simulate(specimens.pipelined, **options).outputs[0]) == 2 * X).all()


def test_only_programs_for_the_tpu_interpreter_are_simulated():
    with pytest.raises(EnvironmentFault, match="TpuInterpreter"):
        run_simulated(capture(jnp.sin, (X,)).executable(Generic()), [X])
