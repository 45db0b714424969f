"""The complete sharded step: values on logical devices, one all-reduce, and the same program without any device."""

from __future__ import annotations

import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from kernel_audit.kernels import regression_references as references
from kernel_audit.kernels.regression_gradient import regression_gradient
from kernel_audit.kernels.regression_host import LEARNING_RATE
from kernel_audit.kernels.regression_step import regression_step
from kernel_audit.program import Generic, Target, capture

LOCALS = {
    "candidate": regression_gradient,
    "ordinary": references.ordinary_gradient,
    "hand": references.hand_gradient,
    "scan": references.one_read_scan,
}
N, D = 64, 5


def operands(n=N, d=D):
    rng = np.random.default_rng(3)
    return [rng.normal(size=size).astype(np.float32) for size in ((n, d), d, n)]


def mesh(*sizes: int) -> AbstractMesh:
    names = ("data", "more")[: len(sizes)]
    return AbstractMesh(sizes, names, axis_types=(AxisType.Auto,) * len(sizes))


def specs_of(given, over, partition):
    return [
        jax.ShapeDtypeStruct(each.shape, each.dtype, sharding=NamedSharding(over, spec))
        for each, spec in zip(given, partition, strict=True)
    ]


def stepped(X, w, y, count=None):
    """One step in float64."""
    X, w, y = (each.astype(np.float64) for each in (X, w, y))
    residuals, count = X @ w - y, count or len(y)
    gradient = 2 * X.T @ residuals / count
    return w - LEARNING_RATE * gradient, residuals @ residuals / count, gradient


@pytest.mark.parametrize("name", LOCALS)
@pytest.mark.parametrize("sizes", [(16,), (256,), (4, 4)])
def test_a_step_is_captured_without_devices_and_has_one_reduction(name, sizes):
    over = mesh(*sizes)
    step, partition = regression_step(LOCALS[name], over)
    given = [jax.ShapeDtypeStruct(size, jnp.float32) for size in ((1 << 14, 512), (512,), (1 << 14,))]
    program = capture(step, specs_of(given, over, partition))
    assert program.results == ["float32[512]", "float32[]", "float32[512]"]
    text = str(program.jaxpr)
    assert len(re.findall(r"\bpsum\w*\[", text)) == 1 and "float32[513]" in text.replace("f32", "float32")
    assert [kernel.name for kernel in program.kernels] == (["regression_gradient"] if name == "candidate" else [])
    assert program.export(Target("tpu"))


def test_rows_that_do_not_split_evenly_are_refused_and_say_what_to_do():
    step, _ = regression_step(regression_gradient, mesh(16))
    with pytest.raises(ValueError, match=r"60 rows do not split evenly over 16 devices: .*counts="):
        jax.eval_shape(step, *[jax.ShapeDtypeStruct(size, jnp.float32) for size in ((60, D), (D,), (60,))])


def test_one_device_is_a_mesh_too():
    X, w, y = operands()
    one = jax.make_mesh((1,), ("data",), axis_types=(AxisType.Auto,))
    step, partition = regression_step(regression_gradient, one)
    assert partition == (PartitionSpec(("data",)), PartitionSpec(), PartitionSpec(("data",)))
    found, right = jax.jit(step)(X, w, y), stepped(X, w, y)
    for mine, other in zip(found, right, strict=True):
        np.testing.assert_allclose(np.asarray(mine), other, rtol=1e-5, atol=1e-6)


ON_EIGHT = """
import jax, numpy as np
from jax.sharding import AxisType, NamedSharding
jax.config.update("jax_num_cpu_devices", 8)
import test_regression_step as here
from kernel_audit.kernels.regression_step import regression_step

X, w, y = here.operands(61)
padded = np.pad(X, ((0, 3), (0, 0)), constant_values=np.nan), w, np.pad(y, (0, 3), constant_values=np.nan)
right = here.stepped(X, w, y)
for sizes, names in (((8,), ("data",)), ((2, 4), ("data", "more"))):
    over = jax.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(sizes))
    for name, local in here.LOCALS.items():
        step, partition = regression_step(local, over, (8,) * 7 + (5,))
        placed = [jax.device_put(each, NamedSharding(over, spec)) for each, spec in zip(padded, partition)]
        compiled = jax.jit(step).lower(*placed).compile()
        found = compiled(*placed)
        reductions = compiled.as_text().count(" all-reduce(") + compiled.as_text().count(" all-reduce-start(")
        error = max(float(np.abs(np.asarray(a) - b).max()) for a, b in zip(found, right))
        copies = {np.asarray(shard.data).tobytes() for shard in found[0].addressable_shards}
        print(name, sizes, reductions, len(found[0].addressable_shards), len(copies), error < 1e-5)
"""


@pytest.mark.slow
def test_eight_devices_agree_with_float64_and_with_each_other():
    """61 examples on 8 devices, filled up with NaN; each device must hold the same weights, bit for bit."""
    script = f"import sys; sys.path.insert(0, {str(__file__).rpartition('/')[0]!r})\n{ON_EIGHT}"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)
    lines = [line for line in run.stdout.splitlines() if line]
    assert lines == [f"{name} {sizes} 1 8 1 True" for sizes in ((8,), (2, 4)) for name in LOCALS], run.stderr[-2000:]


def test_generic_bytes_of_the_step_exist():
    over = mesh(8)
    step, partition = regression_step(regression_gradient, over)
    assert capture(step, specs_of(operands(), over, partition)).export(Generic())
