"""What people read of an inspection, held to files: run with UPDATE_GOLDEN=1 to write them again, and read the difference."""

from __future__ import annotations

import os
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl

from kernel_audit.inspect import inspect_program
from kernel_audit.kernels.pipelined_axpy import pipelined_axpy
from kernel_audit.program import capture
from kernel_audit.records import KernelInspection
from kernel_audit.report.inspection import kernel_lines
from kernel_audit.report.ownership import ownership_lines, ownership_svg

FILES = Path(__file__).parent / "files"


def hold(name: str, text: str) -> None:
    path = FILES / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def pipelined() -> KernelInspection:
    operand = jax.ShapeDtypeStruct((257, 513), jnp.float32)
    (found,) = inspect_program(capture(pipelined_axpy, (operand, operand)), targets=["tpu:v5e"])
    return found


def short() -> KernelInspection:
    """A kernel whose grid leaves out a tail, in two columns of blocks, with a wrong estimate."""

    def body(x_ref, out_ref):
        out_ref[...] = x_ref[...] * 2.0

    spec = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    out = jax.ShapeDtypeStruct((30, 200), jnp.bfloat16)
    cost = pl.CostEstimate(flops=0, transcendentals=0, bytes_accessed=1000)
    kernel = pl.pallas_call(
        body, grid=(3, 2), in_specs=[spec], out_specs=spec, out_shape=out, cost_estimate=cost, name="short"
    )
    (found,) = inspect_program(capture(kernel, (out,)), targets=["tpu:v5e", "tpu:v6e"], arithmetic="bfloat16")
    return found


KERNELS = {"pipelined": pipelined, "short": short}


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_as_text(name: str) -> None:
    hold(f"inspection-{name}.txt", "\n".join(kernel_lines(KERNELS[name]())) + "\n")


@pytest.mark.parametrize("name", KERNELS)
def test_its_blocks_as_a_drawing(name: str) -> None:
    owners = KERNELS[name]().owner_map
    assert owners is not None
    hold(f"ownership-{name}.svg", ownership_svg(owners, f"{name}: who writes which block"))


def test_the_last_logical_row_and_column_are_marked() -> None:
    owners = pipelined().owner_map
    assert owners is not None
    lines = ownership_lines(owners)
    assert lines[0].endswith("4*") and lines[-2].lstrip().startswith("32*")
    assert "1 of 8 rows, 1 of 128 columns" in lines[-1]


def test_a_block_that_nobody_writes_is_drawn_as_such() -> None:
    owners = short().owner_map
    assert owners is not None and owners.owners[-1] == [None, None]
    assert ownership_lines(owners)[-2].split() == ["3*", "-", "-"]
