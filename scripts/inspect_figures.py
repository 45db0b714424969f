"""Measures what `kernel-audit inspect` promises: ownership of large grids in milliseconds. Run by `scripts/bench inspect`.

Best of five for each grid, in one process; beside it the TPU interpreter's time for 256 programs of the same kernel, the
cheapest dynamic way to see who writes what. Exit code 1 when a bound is missed.
"""

import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
from jax.experimental import pallas as pl

from kernel_audit.inspect.equation import read_equation
from kernel_audit.inspect.ownership import visits
from kernel_audit.inspect.walk import kernel_equations
from kernel_audit.program import TpuInterpreter, capture

SAMPLES = 5
# grid -> the most that its ownership may take, in seconds
BOUNDS_S = {(100, 1000): 0.020, (1000, 1000): 0.200, (1_000_000, 1_000_000): 0.020}
INTERPRETED = (16, 16)


def main() -> int:
    print(f"inspect: best of {SAMPLES}, jax {jax.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    held = [show(grid, bound_s) for grid, bound_s in BOUNDS_S.items()]
    interpreted()
    return 0 if all(held) else 1


def show(grid: tuple[int, int], bound_s: float) -> bool:
    """One grid on one line; whether its bound held."""
    program = doubling(grid)
    ((path, equation, trips, around),) = kernel_equations(program.jaxpr)
    kernel = read_equation(path, "double", equation, trips=trips, platform="tpu", around=around)
    samples = []
    for _ in range(SAMPLES):
        started = time.perf_counter()
        found = visits(kernel.outputs[0], kernel.grid, ("parallel", "parallel"))
        samples.append(time.perf_counter() - started)
    assert (found.uncovered, found.repeated, found.out_of_range) == (0, 0, 0)
    held = min(samples) < bound_s
    points = f"{grid[0] * grid[1]:.0e} points, {found.proof}"
    verdict = "held" if held else "MISSED"
    print(
        f"  best {1e3 * min(samples):8.2f} ms, bound {1e3 * bound_s:g} ms: {verdict}   {points}   {milliseconds(samples)}"
    )
    return held


def interpreted() -> None:
    """The TPU interpreter, compiled before: 256 programs of the same kernel, without race detection."""
    program = doubling(INTERPRETED)
    run = program.executable(TpuInterpreter(detect_races=False))
    operand = [np.zeros(program.specs[0].shape, np.float32)]
    samples = []
    for _ in range(SAMPLES + 1):
        started = time.perf_counter()
        jax.block_until_ready(run(operand))
        samples.append(time.perf_counter() - started)
    warm = samples[1:]
    print(f"  best {1e3 * min(warm):8.2f} ms, beside it: the TPU interpreter, 256 programs   {milliseconds(warm)}")


def milliseconds(samples: list[float]) -> str:
    return "ms of " + " ".join(f"{1e3 * each:.2f}" for each in samples)


def doubling(grid: tuple[int, int]):
    """2x in blocks of (8, 128), the last row of blocks with a tail; nothing of it is allocated."""
    shape = (grid[0] * 8 - 3, grid[1] * 128)
    spec = pl.BlockSpec((8, 128), lambda i, j: (i, j))

    def double(x_ref, out_ref):
        out_ref[...] = x_ref[...] * 2.0

    kernel = pl.pallas_call(
        double, grid=grid, in_specs=[spec], out_specs=spec, out_shape=jax.ShapeDtypeStruct(shape, np.float32)
    )
    return capture(kernel, (jax.ShapeDtypeStruct(shape, np.float32),))


if __name__ == "__main__":
    sys.exit(main())
