"""One program has one digest, wherever and in whatever order it is captured; any edit of the kernel changes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from kernel_audit.program import canonical_digest, capture

HERE = Path(__file__).parent
X = jax.ShapeDtypeStruct((16, 128), jnp.float32)

KERNEL = """
def body(x_ref, y_ref, o_ref):
    o_ref[...] = x_ref[...] * 2.0 + y_ref[...]

def candidate(x, y):
    return pl.pallas_call(
        body,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(2,),
        in_specs=[pl.BlockSpec((8, 128), lambda i: (i, 0)), pl.BlockSpec((8, 128), lambda i: (i, 0))],
        out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
        input_output_aliases={},
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel",)),
        cost_estimate=None,
        name="axpy",
        interpret=False,
    )(x, y) + weights
"""

EDITS = {
    "constant": ("* 2.0 +", "* 2.0000002 +"),
    "sign-of-zero": ("+ y_ref[...]", "+ y_ref[...] * -0.0"),
    "operation": ("* 2.0 + y_ref", "* 2.0 - y_ref"),
    "operand-order": ("x_ref[...] * 2.0 + y_ref[...]", "y_ref[...] + x_ref[...] * 2.0"),
    "block": ("(8, 128)", "(16, 128)"),
    "grid": ("grid=(2,)", "grid=(3,)"),
    "index-map": ("lambda i: (i, 0)),\n        input", "lambda i: (1 - i, 0)),\n        input"),
    "semantics": ('("parallel",)', '("arbitrary",)'),
    "vmem-limit": ('("parallel",)', '("parallel",), vmem_limit_bytes=1 << 20'),
    "alias": ("aliases={}", "aliases={0: 0}"),
    "cost-estimate": ("estimate=None", "estimate=pl.CostEstimate(flops=1, bytes_accessed=1, transcendentals=0)"),
    "name": ('"axpy"', '"axpz"'),
}


def captured(source: str, weights: float = 1.0):
    names = {"pl": pl, "pltpu": pltpu, "jax": jax, "weights": np.full((16, 128), weights, np.float32)}
    exec(source, names)
    return capture(names["candidate"], (X, X))


@pytest.mark.parametrize("edit", EDITS)
def test_any_edit_of_the_kernel_changes_both_digests(edit):
    before, after = EDITS[edit]
    assert before in KERNEL
    original, edited = captured(KERNEL), captured(KERNEL.replace(before, after))
    assert edited.digest != original.digest
    assert edited.kernels[0].digest != original.kernels[0].digest


def test_weights_change_the_program_and_not_the_kernel():
    original, other = captured(KERNEL), captured(KERNEL, weights=np.nextafter(np.float32(1), np.float32(2)))
    assert other.digest != original.digest
    assert other.kernels[0].digest == original.kernels[0].digest


@pytest.mark.parametrize("interpret", ["True", "pltpu.InterpretParams(detect_races=True)"])
def test_how_a_kernel_is_run_changes_nothing(interpret):
    original = captured(KERNEL)
    other = captured(KERNEL.replace("interpret=False", f"interpret={interpret}"))
    assert (other.digest, other.kernels[0].digest) == (original.digest, original.kernels[0].digest)
    assert other.kernels[0].authored_interpret != original.kernels[0].authored_interpret


def test_lines_and_comments_change_nothing():
    shifted = KERNEL.replace("def candidate", "# a comment\n\n\ndef candidate").replace(
        "in_specs", "\n\n        in_specs"
    )
    assert captured(shifted).digest == captured(KERNEL).digest


def test_donation_and_trees_are_part_of_a_program():
    assert capture(jnp.sin, (X,), donate=[0]).digest != capture(jnp.sin, (X,)).digest
    assert capture(lambda x: [jnp.sin(x)], (X,)).digest != capture(lambda x: (jnp.sin(x),), (X,)).digest


def test_a_shared_and_a_repeated_inner_jaxpr_are_the_same():
    """Whether JAX's caches hand out one object or two equal ones depends on the history of the process."""

    def twice(inner):
        return jax.make_jaxpr(lambda x: inner[1](inner[0](x)))(1.0)

    shared = jax.jit(lambda x: x * 2.0)
    repeated = [jax.jit(lambda x: x * 2.0), jax.jit(lambda x: x * 2.0)]
    assert canonical_digest(twice([shared, shared])) == canonical_digest(twice(repeated))


@pytest.mark.parametrize("value", [np.float32(2), np.arange(3), jnp.ones(2), {"a": (1, None)}, float("nan")])
def test_values_have_one_canonical_form(value):
    assert canonical_digest(value) == canonical_digest(value)
    assert canonical_digest(value) != canonical_digest([value])


@pytest.mark.parametrize("which", ["everyday", pytest.param("all", marks=pytest.mark.slow)])
def test_digests_are_stable_over_processes_seeds_folders_lines_and_order(tmp_path, which):
    outputs = [
        digests_of_all(tmp_path / "one", hash_seed="0", shift=0, arguments=[which, "in-order"]),
        digests_of_all(tmp_path / "another" / "folder", hash_seed="12345", shift=57, arguments=[which, "reversed"]),
    ]
    assert len(outputs[0]) >= (31 if which == "all" else 25)
    assert outputs[0] == outputs[1]


def digests_of_all(folder: Path, *, hash_seed: str, shift: int, arguments: list[str]) -> dict[str, list[str]]:
    folder.mkdir(parents=True)
    source = (HERE / "program_specimens.py").read_text()
    header, rest = source.split("import dataclasses", 1)
    (folder / "program_specimens.py").write_text(header + "# a line\n" * shift + "import dataclasses" + rest)
    (folder / "print_digests.py").write_text((HERE / "print_digests.py").read_text())
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(folder)}
    command = [sys.executable, str(folder / "print_digests.py"), *arguments]
    done = subprocess.run(command, check=True, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)
