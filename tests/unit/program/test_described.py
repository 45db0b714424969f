"""The described device is seen while tracing and interpreting, and gone afterwards; versions are refused by name."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import program_specimens as specimens
import pytest
from jax.experimental.pallas import tpu as pltpu

from kernel_audit.errors import EnvironmentFault
from kernel_audit.program import Generic, Target, TpuInterpreter, capture, claimed_backend, described, refuse_by_name
from kernel_audit.program import compat as versions

X = specimens.X


def chip() -> str:
    return str(pltpu.get_tpu_info().chip_version)


def test_pallas_sees_the_described_chip_and_only_inside():
    with described("TPU v5 lite"):
        first = chip()
        with described("TPU v6 lite"):
            second = chip()
        assert chip() == first
    assert first != second
    with pytest.raises(ValueError, match="Unsupported TPU device kind"):
        chip()


def test_the_described_chip_is_seen_by_a_candidate_that_is_jitted():
    """A jitted candidate traced for one device is traced again for another."""
    seen = []

    @jax.jit
    def candidate(x):
        seen.append(chip())
        return specimens.doubled(x)

    capture(candidate, (X,), device_kind="TPU v5 lite")
    capture(candidate, (X,), device_kind="TPU v6 lite")
    assert len(set(seen)) == 2


def test_the_claimed_backend_is_what_a_candidate_is_told():
    def candidate(x):
        return x if jax.default_backend() == "cpu" else specimens.doubled(x)

    assert capture(candidate, (X,)).kernels == []
    with claimed_backend("tpu"):
        program = capture(candidate, (X,))
    assert len(program.kernels) == 1
    assert jax.default_backend() == "cpu"


def test_the_claim_ends_with_an_exception():
    with pytest.raises(RuntimeError, match="stop"), claimed_backend("tpu"), described("TPU v5 lite"):
        raise RuntimeError("stop")
    assert jax.default_backend() == "cpu"


@pytest.mark.parametrize("version", ["0.9.1", "0.8.0", "0.13.0", "0.13.0.dev20260101", "1.0"])
def test_versions_outside_the_range_are_refused(monkeypatch, captured, version):
    program = captured("plain").program
    monkeypatch.setattr(jax, "__version__", version)
    with pytest.raises(EnvironmentFault, match=version):
        capture(jnp.sin, (X,))
    with pytest.raises(EnvironmentFault, match=version):
        refuse_by_name(program, Generic())


@pytest.mark.parametrize("version", ["0.9.2", "0.10.2", "0.11.2", "0.12.0.1", "0.12.3rc1"])
def test_versions_inside_the_range_are_taken(monkeypatch, version):
    monkeypatch.setattr(jax, "__version__", version)
    versions.require_supported_jax()


def test_pl_kernel_is_refused_in_the_generic_interpreter_of_0_9_2_only(captured):
    program = captured("pl-kernel").program
    for mode in (Target(), TpuInterpreter()):
        refuse_by_name(program, mode)
    if jax.__version__ == "0.9.2":
        with pytest.raises(EnvironmentFault, match="returns zeros"):
            refuse_by_name(program, Generic())
    else:
        refuse_by_name(program, Generic())


def test_no_other_module_uses_private_jax():
    import kernel_audit.program as package

    folder = versions.__file__.rsplit("/", 1)[0]
    assert folder == package.__file__.rsplit("/", 1)[0]
    import pathlib

    # Versions; what is replaced in the TPU interpreter to count copies; bodies as the TPU lowering writes them; shard_map as
    # it is traced with its check on.
    private = {"compat.py", "interpreter_hooks.py", "kernel_bodies.py", "varying_axes.py"}
    for file in pathlib.Path(folder).glob("*.py"):
        assert file.name in private or "jax._src" not in file.read_text().replace("`jax._src`", ""), file.name
