"""Exported bytes: any damage is a CaptureError; sidecar, donation and platform survive."""

from __future__ import annotations

import json
import random

import jax
import jax.numpy as jnp
import numpy as np
import program_specimens as specimens
import pytest

from kernel_audit.errors import CaptureError, EnvironmentFault
from kernel_audit.program import Generic, Target, TpuInterpreter, capture, load
from kernel_audit.program.packed import unpack
from kernel_audit.records import encode

X = specimens.X


@pytest.fixture(scope="module")
def data(captured):
    return captured("donated").program.export(Generic())


def test_any_changed_byte_is_refused(data):
    places = random.Random(0).sample(range(len(data)), 200)
    for place in [*range(60), *places]:
        damaged = bytearray(data)
        damaged[place] ^= 0x40
        with pytest.raises(CaptureError, match="not an exported program"):
            load(bytes(damaged))


@pytest.mark.parametrize("length", [0, 1, 40, 200, -1])
def test_missing_bytes_are_refused(data, length):
    with pytest.raises(CaptureError, match="not an exported program"):
        load(data[:length])


def test_added_bytes_are_refused(data):
    with pytest.raises(CaptureError, match="not an exported program"):
        load(data + b"\0")


def test_the_sidecar_says_what_the_bytes_do_not(data, captured):
    sidecar = load(data).sidecar
    program = captured("donated").program
    assert (sidecar.digest, sidecar.donated, sidecar.kernels) == (program.digest, [0], program.kernels)
    assert (sidecar.mode, sidecar.platform, sidecar.jax_version) == ("generic", "cpu", jax.__version__)
    assert (sidecar.mesh, sidecar.specs) == ([], [None])
    assert (sidecar.operands, sidecar.results) == (["float32[16,128]"], ["float32[16,128]"])
    assert json.loads(encode(sidecar))["schema"] == "kernel-audit/exported/1"


def test_the_sidecar_is_the_same_bytes_each_time(captured):
    program = captured("pytree").program
    sidecars = [encode(unpack(program.export(Generic()))[0]) for _ in range(2)]
    assert sidecars[0] == sidecars[1]


def test_donation_survives_export_and_load(data):
    operand = jnp.asarray(X)
    (result,) = load(data).executable()([operand])
    assert operand.is_deleted()
    assert (np.asarray(result) == 2 * X).all()


def test_donation_happens_in_the_capturing_process(captured):
    operand = jnp.asarray(X)
    captured("donated").program.executable(Generic())([operand])
    assert operand.is_deleted()
    kept = jnp.asarray(X)
    captured("plain").program.executable(Generic())([kept])
    assert not kept.is_deleted()


def test_numpy_operands_are_never_written(captured):
    operand = X.copy()
    captured("donated").program.executable(Generic())([operand])
    assert (operand == X).all()


def test_donation_without_a_fitting_result_is_no_warning():
    program = capture(jax.jit(lambda x: x.sum(), donate_argnums=0), (X,))
    assert program.donated == (0,)
    program.executable(Generic())([X])
    load(program.export(Generic())).executable()([X])


def test_donation_may_be_given():
    program = capture(lambda a, b: a + b, (X, X), donate=[1])
    assert program.donated == (1,)


def test_bytes_for_a_target_do_not_run_here(captured):
    loaded = load(captured("plain").program.export(Target("tpu")))
    with pytest.raises(EnvironmentFault, match="another platform"):
        loaded.executable()


def test_a_kernel_for_a_gpu_is_exported_without_one():
    program = capture(triton_doubled, (X,), device_kind="NVIDIA H100 80GB HBM3")
    sidecar = load(program.export(Target("cuda"))).sidecar
    assert (sidecar.platform, sidecar.device_kind) == ("cuda", "NVIDIA H100 80GB HBM3")
    (result,) = program.executable(Generic())([X])
    assert (np.asarray(result) == 2 * X).all()


def triton_doubled(x):
    from jax.experimental.pallas import triton

    return specimens.doubled(x, compiler_params=triton.CompilerParams(num_warps=4))


def test_the_tpu_interpreter_is_not_exportable(captured):
    with pytest.raises(CaptureError, match="host callbacks"):
        captured("plain").program.export(TpuInterpreter())


def test_a_kernel_that_does_not_lower_is_refused_with_its_reason():
    def candidate(x):
        from jax.experimental import pallas as pl

        block = pl.BlockSpec((2, 4), lambda i: (i, 0))
        body = specimens._double_body
        shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pl.pallas_call(body, out_shape=shape, grid=(8,), in_specs=[block], out_specs=block)(x)

    program = capture(candidate, (X,))
    program.export(Generic())
    with pytest.raises(CaptureError, match="divisible by 8 and 128"):
        program.export(Target("tpu"))


def test_bytes_of_a_newer_jax_are_refused_by_name(captured, monkeypatch):
    from kernel_audit.program import packed

    def unreadable(_data):
        raise ValueError("Failed to deserialize StableHLO\n/some/folder/here")

    monkeypatch.setattr(packed.jax_export, "deserialize", unreadable)
    with pytest.raises(CaptureError, match="which wrote it") as caught:
        load(captured("plain").program.export(Generic()))
    assert "/some" not in str(caught.value)
