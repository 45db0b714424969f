"""Every kind of candidate is traced once, found to have its kernels, and run in both interpreters."""

from __future__ import annotations

import jax
import numpy as np
import program_specimens as specimens
import pytest

from kernel_audit.errors import CaptureError, EnvironmentFault
from kernel_audit.program import Generic, Target, TpuInterpreter, canonical_digest, capture, load, run_simulated
from kernel_audit.program.canonical import CanonicalWriter

ALL = [
    pytest.param(each.name, id=each.name, marks=[pytest.mark.slow] if each.slow else []) for each in specimens.SPECIMENS
]


def cannot_run_generic(name: str) -> bool:
    return name == "pl-kernel" and jax.__version__ == "0.9.2"


def require_equal(outputs, reference, tolerance):
    for got, wanted in zip(outputs, jax.tree.leaves(reference), strict=True):
        got, wanted = np.asarray(got), np.asarray(wanted)
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        difference = np.abs(got.astype(np.float64) - wanted.astype(np.float64))
        assert difference.max() <= tolerance


@pytest.mark.parametrize("name", ALL)
def test_kernels_are_found_and_results_described(captured, name):
    each = captured(name)
    assert len(each.program.kernels) in each.specimen.kernels
    reference = jax.tree.leaves(each.specimen.reference(*each.operands))
    described = [f"{np.asarray(leaf).dtype.name}[{','.join(map(str, leaf.shape))}]" for leaf in reference]
    assert each.program.results == described


@pytest.mark.parametrize("name", ALL)
def test_generic_interpreter_agrees_with_plain_jax(captured, name):
    each = captured(name)
    if cannot_run_generic(name):
        with pytest.raises(EnvironmentFault, match="generic-core-map-zeros"):
            each.program.executable(Generic())
        with pytest.raises(EnvironmentFault, match="generic-core-map-zeros"):
            each.program.export(Generic())
        return
    require_equal(each.generic, each.specimen.reference(*each.operands), each.specimen.tolerance)


@pytest.mark.parametrize("name", ALL)
def test_tpu_interpreter_agrees_and_finds_no_race(captured, name):
    each = captured(name)
    simulated = run_simulated(each.program.executable(TpuInterpreter()), each.leaves)
    require_equal(simulated.outputs, each.specimen.reference(*each.operands), each.specimen.tolerance)
    assert not simulated.races


@pytest.mark.parametrize("name", ALL)
def test_exported_for_tpu_with_the_same_identity(captured, name):
    each = captured(name)
    if not each.specimen.exportable:
        with pytest.raises(CaptureError, match="cannot be exported"):
            each.program.export(Target("tpu"))
        with pytest.raises(CaptureError, match="cannot be exported"):
            each.program.export(Generic())
        return
    sidecar = load(each.program.export(Target("tpu"))).sidecar
    assert (sidecar.digest, sidecar.platform, sidecar.mode) == (each.program.digest, "tpu", "target")
    assert sidecar.kernels == each.program.kernels
    assert sidecar.operands == each.program.operands


@pytest.mark.parametrize("name", ALL)
def test_nothing_in_a_program_is_known_by_its_text_only(captured, name):
    writer = CanonicalWriter()
    writer.write(captured(name).program.jaxpr)
    assert writer.opaque == set()


def test_rewriting_changes_no_digest_and_the_original_stays(captured):
    program = captured("scan").program
    before = canonical_digest(program.jaxpr)
    for mode in (Generic(), Target(), TpuInterpreter()):
        assert canonical_digest(program.in_mode(mode)) == before
    assert program.kernels[0].authored_interpret == "False"
    assert "interpret=False" in str(program.jaxpr)


def test_the_candidate_is_called_once():
    calls = []

    def counted(x):
        calls.append(x)
        return specimens.doubled(x)

    program = capture(counted, (specimens.X,))
    program.executable(Generic())([specimens.X])
    run_simulated(program.executable(TpuInterpreter()), [specimens.X])
    program.export(Generic())
    program.export(Target())
    assert len(calls) == 1


def test_an_executable_is_kept_and_does_not_trace_again(captured):
    program = captured("plain").program
    assert program.executable(Generic()) is program.executable(Generic())
    assert program.executable(TpuInterpreter()) is program.executable(TpuInterpreter())
    assert program.executable(TpuInterpreter()) is not program.executable(TpuInterpreter(random_seed=1))


def test_effects_are_put_on_and_taken_off_again(captured):
    def effects(jaxpr):
        return {str(effect) for effect in jaxpr.effects}

    program = captured("scan").program
    assert effects(program.in_mode(Generic())) == effects(program.in_mode(Target())) == set()
    assert any("Ordered" in effect for effect in effects(program.in_mode(TpuInterpreter())))
    own = captured("io-callback").program
    assert any("Ordered" in effect for effect in effects(own.in_mode(Generic())))


def test_other_operands_than_captured_are_refused(captured):
    run = captured("plain").program.executable(Generic())
    with pytest.raises(CaptureError, match=r"float32\[16,128\]"):
        run([np.zeros((8, 128), np.float32)])
    with pytest.raises(CaptureError, match=r"float64\[16,128\]"):
        run([np.zeros((16, 128), np.float64)])


def test_arrays_and_descriptions_of_them_are_the_same_program():
    described = jax.ShapeDtypeStruct(specimens.SHAPE, np.float32)
    digests = {
        capture(specimens.doubled, (each,)).digest for each in (described, specimens.X, jax.numpy.asarray(specimens.X))
    }
    assert len(digests) == 1
