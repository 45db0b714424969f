"""The lesson on correctness and performance evidence, as the package tells it: every fact of it, one line each.

    python3 examples/lesson.py                       # figure into evidence/lesson
    python3 examples/lesson.py --out DIR

The eight cells are those of `kernel-audit check axpy --cells lesson`; what the lesson tries by hand is tried by hand. All of
it runs on a CPU, and no line of it is a time. Exit code 1 at the first thing that is not as the contract has it.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / "projects" / "kernel-audit"))
import checkout  # noqa: E402

checkout.use()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from kernel_audit import conduct  # noqa: E402
from kernel_audit.errors import AuditError  # noqa: E402
from kernel_audit.evidence import Evidence  # noqa: E402
from kernel_audit.fixture import programs  # noqa: E402
from kernel_audit.kernels.audits import CONFIGURATIONS, LESSON_SHAPES  # noqa: E402
from kernel_audit.kernels.axpy_references import axpy_oracle, fused_jnp  # noqa: E402
from kernel_audit.kernels.pipelined_axpy import pipelined_axpy  # noqa: E402
from kernel_audit.report import precision_gap_figure  # noqa: E402
from kernel_audit.statistics import conditional_speedup, speedup_limit  # noqa: E402
from kernel_audit.target.benchmark import target_benchmark  # noqa: E402
from kernel_audit.worker.endings import exit_code_of  # noqa: E402

ROW_ORDER = (8, 0, 7, 1, 6, 2, 5, 3, 4)


def main() -> int:
    """Prints the lesson, writes its figure. Exit code 0; 1 at a fact that does not hold; 2 when it cannot be run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("evidence/lesson"), help="folder for the figure and its data")
    out = parser.parse_args().out
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"argument --out: {out} is no folder that can be made: {error.strerror}")
    return exit_code_of(lambda: told(out))


def told(out: Path) -> int:
    """Every line, printed as it comes."""
    jax.config.update("jax_platforms", "cpu")  # the lesson is about what a CPU can show
    try:
        for line in lesson(out):
            print(line, flush=True)
    except AuditError as error:
        print(error.text(), file=sys.stderr)
        return error.exit_code
    return 0


def lesson(out: Path) -> Iterator[str]:
    """Every line, in the order of the lesson."""
    evidence = conduct.check(conduct.Question("axpy", cells="lesson"), lambda *_: None).evidence
    yield from cells(evidence)
    yield from benchmark_refusal()
    yield from row_permutation()
    yield from rounding()
    yield from padded_work()
    yield from rejected_dtypes()
    yield from opportunity()
    yield from figure(evidence, out)
    yield "No target time was measured: every value above comes from a CPU, and says nothing about speed."


def cells(evidence: Evidence) -> Iterator[str]:
    """Two questions, two numbers: did the kernel keep its contract, and what does the contract's rounding cost?"""
    for cell in evidence.cells:
        require(cell.outcome == "agrees", f"{cell.id}: {cell.outcome} {cell.code}")
        yield (
            f"{shape_text(cell.shape)} {cell.dtype}: kernel error {cell.kernel_error_max} against the represented-input "
            f"oracle, gap {cell.representation_gap_max} to the original float32 data"
        )


def benchmark_refusal() -> Iterator[str]:
    """A time is asked for where there is no target: nothing may be compiled, timed or simulated instead."""
    probe = jnp.ones((8, 128), jnp.float32)
    try:
        target_benchmark(lambda x, y: pipelined_axpy(x, y, mode="tpu"), fused_jnp, (probe, probe))
    except RuntimeError as refusal:
        yield f"Benchmark refused on {jax.default_backend()}: {refusal}"
    else:
        require(False, "the benchmark accepted operands on a CPU")


def row_permutation() -> Iterator[str]:
    """Rows do not depend on one another, so their order must not matter. Drawn after the lesson's fixtures."""
    rng = np.random.default_rng(42)
    for dims in LESSON_SHAPES:
        rng.normal(size=(2, dims["m"], dims["n"]))
    x, y = (jnp.asarray(rng.normal(size=(9, 129)), jnp.float32) for _ in range(2))
    order = np.array(ROW_ORDER)
    restored = pipelined_axpy(x[order], y[order])[np.argsort(order)]
    require(bool(jnp.array_equal(restored, pipelined_axpy(x, y))), "rows in another order gave another result")
    yield f"Rows of (9, 129) in the order {' '.join(map(str, ROW_ORDER))}, result restored: identical"


def rounding() -> Iterator[str]:
    """When a value is rounded is part of the algorithm: once too early, and only at the end."""
    first, second = (jnp.array([value], jnp.float32) for value in (1.00390625, 0.00390625))
    early = (first.astype(jnp.bfloat16).astype(jnp.float32) + second).astype(jnp.bfloat16)
    final = (first + second).astype(jnp.bfloat16)
    yield f"Rounding to bfloat16 early, and only at the end: {float(early[0])} {float(final[0])}"


def padded_work() -> Iterator[str]:
    """Two tiles and two slot counts on one frozen fixture; errors and padded work apart."""
    x, y = (np.random.default_rng(seed).normal(size=(15, 255)).astype(np.float32) for seed in (8, 9))
    for block, slots in CONFIGURATIONS:
        padded = programs(x.shape, block) * math.prod(block)
        error = float(np.max(np.abs(pipelined_axpy(x, y, block=block, buffers=slots) - axpy_oracle(x, y))))
        require(error == 0.0, f"block {block} with {slots} slots: kernel error {error}")
        yield f"(15, 255) in blocks {block} with {slots} slots: padded elements {padded}, kernel error {error}"


def rejected_dtypes() -> Iterator[str]:
    """What the contract does not name is refused, not converted."""
    for name, dtypes in (("Mixed", ("float32", "bfloat16")), ("Integer", ("int32", "int32"))):
        operands = [jnp.ones((8, 128), dtype) for dtype in dtypes]
        try:
            pipelined_axpy(*operands)
        except ValueError as refusal:
            yield f"{name} dtypes rejected: {refusal}"
        else:
            require(False, f"{name} dtypes were accepted: {dtypes}")


def opportunity() -> Iterator[str]:
    """What a step could gain, if a profile gave the operation a share of 0.3: derived, not measured."""
    twice, limit = conditional_speedup(0.3, 2.0), speedup_limit(0.3)
    yield f"Step speed-up if a share of 0.3 became twice as fast, and if it cost nothing: {twice} {limit}"


def figure(evidence: Evidence, out: Path) -> Iterator[str]:
    """The largest gap by fixture and dtype, as SVG, PNG and data."""
    files = precision_gap_figure(evidence)
    for name, data in files.items():
        (out / name).write_bytes(data)
    yield f"Figure of the gaps written: {', '.join(files)}"


def shape_text(shape: list[int]) -> str:
    """A shape as NumPy writes it: (8, 128)."""
    return str(tuple(shape))


def require(held: bool, text: str) -> None:
    """Ends the lesson with exit code 1 and `text` on stderr when a fact does not hold."""
    if not held:
        sys.exit(f"not as the lesson has it: {text}")


if __name__ == "__main__":
    sys.exit(main())
