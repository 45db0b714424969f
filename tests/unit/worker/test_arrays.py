"""Arrays cross bit for bit, whatever their dtype."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_audit.errors import InternalError
from kernel_audit.worker import read_arrays


def test_every_dtype_crosses_bit_for_bit(pool, job, specimens):
    made = job("many_arrays")
    assert pool.run(made).outcome == "finished"
    arrays = read_arrays(made.folder, "arrays")
    expected = specimens.specimen_arrays()
    assert list(arrays) == list(expected)
    for name, array in arrays.items():
        wanted = np.asarray(expected[name])
        wanted = wanted.astype(wanted.dtype.newbyteorder("="))
        assert (array.dtype, array.shape) == (wanted.dtype, wanted.shape), name
        assert array.tobytes() == wanted.tobytes(), name
        assert not array.flags.writeable or array.size == 0


def test_a_jax_array_crosses(pool, job):
    made = job("jax_array")
    pool.run(made)
    array = read_arrays(made.folder, "x")["x"]
    assert array.dtype.name == "bfloat16"
    assert array.astype(np.float32).tolist() == [0, 1, 2, 3]


def test_a_step_without_arrays_has_none(pool, job):
    made = job("three_steps", seconds=0)
    pool.run(made)
    assert read_arrays(made.folder, "cell/1") == {}


def test_an_array_of_objects_is_refused_by_name(pool, job):
    error = pool.run(job("object_array")).audit_error()
    assert error is not None
    assert (error.where, error.got) == ("x", "object")


def test_arrays_of_a_step_that_was_not_finished_are_refused(pool, job):
    made = job("echo")
    pool.run(made)
    with pytest.raises(InternalError, match="the step was not finished"):
        read_arrays(made.folder, "cell/1")
