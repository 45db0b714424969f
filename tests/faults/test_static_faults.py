"""Kernels with a static fault are named before anything runs; correct unusual ones are not accused.

A body whose schedule spills is seen by the compiler alone: tests of the compiled level hold it.
"""

from __future__ import annotations

import pytest
import static_kernels
import unusual_kernels
from static_kernels import BESIDE

from kernel_audit.inspect import inspect_program
from kernel_audit.program import capture

FAULTS = {**static_kernels.FAULTS, **unusual_kernels.FAULTS}
HONEST = {**static_kernels.HONEST, **unusual_kernels.HONEST}


def codes(made: tuple, arithmetic: str | None = "float32") -> set[str]:
    function, operands = made
    kernels = inspect_program(capture(function, operands), targets=["tpu:v5e"], arithmetic=arithmetic)
    assert kernels
    return {finding.code for kernel in kernels for finding in kernel.findings}


@pytest.mark.parametrize("name", FAULTS)
def test_a_static_fault_is_named_and_nothing_else(name: str):
    make, code = FAULTS[name]
    assert codes(make()) - BESIDE.get(name, set()) == {code}


@pytest.mark.parametrize("name", HONEST)
def test_a_correct_unusual_kernel_is_not_accused(name: str):
    assert codes(HONEST[name]()) == set()


def test_there_are_enough_of_both():
    assert len({code for _, code in FAULTS.values()}) >= 13 and len(FAULTS) >= 15 and len(HONEST) >= 15


@pytest.mark.parametrize("name", unusual_kernels.NARROW)
def test_only_what_adds_up_is_called_an_accumulator(name: str):
    make, adds_up = unusual_kernels.NARROW[name]
    assert codes(make(), None) == ({"accumulator-narrow"} if adds_up else set())
