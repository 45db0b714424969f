"""Programs are captured and compiled once for all tests of this folder, on the CPU."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

import jax
import pytest

from kernel_audit.program import Generic, capture

HERE = Path(__file__).parent
# For `program_specimens`; a fresh process is given this folder, or on purpose is not.
sys.path.insert(0, str(HERE))
jax.config.update("jax_platforms", "cpu")


class Captured:
    """A specimen's program with its operands, and its generic results, computed when first asked for."""

    def __init__(self, name: str) -> None:
        import program_specimens as specimens

        self.specimen = specimens.BY_NAME[name]
        function, self.operands = self.specimen.make()
        self.leaves = jax.tree.leaves(self.operands)
        self.program = capture(function, self.operands, keywords=self.specimen.keywords)

    @functools.cached_property
    def generic(self) -> list[jax.Array]:
        return self.program.executable(Generic())(self.leaves)


@pytest.fixture(scope="session")
def captured():
    """Function from a specimen's name to the one Captured of it."""
    return functools.cache(Captured)


@pytest.fixture(scope="session")
def fresh_environment():
    """Environment for a fresh process in which the specimens can be imported."""
    return {**os.environ, "PYTHONPATH": str(HERE), "JAX_PLATFORMS": "cpu"}
