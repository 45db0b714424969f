"""Checks what the assessment can check on a CPU: one line a check, then `N passed, M failed`.

    python3 assessments/check_assessments.py

Exit code 0 when all pass, 1 when one fails, 2 when the checks cannot be run. The rest of the assessment, a profile, a trace
and everything on a target, is not checked here and no pass stands in for it.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "projects" / "kernel-audit"))
import checkout  # noqa: E402

checkout.use()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from kernel_audit import conduct  # noqa: E402
from kernel_audit.errors import AuditError  # noqa: E402
from kernel_audit.evidence import Evidence  # noqa: E402
from kernel_audit.fixture import originals, programs  # noqa: E402
from kernel_audit.kernels.audits import CONFIGURATIONS  # noqa: E402
from kernel_audit.kernels.axpy_references import axpy_oracle  # noqa: E402
from kernel_audit.kernels.pipelined_axpy import OUTPUT_SLOTS, pipelined_axpy  # noqa: E402
from kernel_audit.records import Cell, RefusalCheck  # noqa: E402
from kernel_audit.statistics import conditional_speedup, speedup_limit  # noqa: E402
from kernel_audit.worker.endings import exit_code_of  # noqa: E402
from kernel_audit.workload import count_weighted_mean, mean_gradient, unweighted_mean  # noqa: E402

FIXTURES = HERE / "pipelined_fixtures.py"
COUNTS = (3, 5)  # examples a shard
LARGEST_ERROR = 1e-6


@dataclass(frozen=True)
class Check:
    """One line: what was checked, and whether it held."""

    held: bool
    text: str

    def __str__(self) -> str:
        return f"{'pass' if self.held else 'FAIL'}  {self.text}"


def main(arguments: Sequence[str] = ()) -> int:
    """Prints every check as it is made. Exit code: 0, 1 when one fails, 2 when they cannot be run."""
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args(arguments)
    return exit_code_of(checked)


def checked() -> int:
    """All checks, then how many passed."""
    jax.config.update("jax_platforms", "cpu")  # what a CPU can show, on a machine with an accelerator, too
    results = []
    try:
        for check in all_checks():
            print(check, flush=True)
            results.append(check.held)
    except AuditError as error:
        print(error.text(), file=sys.stderr)
        return error.exit_code
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


def all_checks() -> Iterator[Check]:
    """Every check, in the order of the assessment's tasks."""
    yield from aggregation_checks()
    yield from opportunity_checks()
    evidence = observed()
    yield from fixture_checks(evidence)
    yield from configuration_checks(evidence)


def aggregation_checks() -> Iterator[Check]:
    """Task 2: gradients of shards of three and five examples, joined with and without their counts."""
    features = jnp.arange(16, dtype=jnp.float32).reshape(8, 2) / 8
    weights = jnp.array([0.5, -0.25], dtype=jnp.float32)
    targets = features @ jnp.array([1.2, -0.8], dtype=jnp.float32)
    shards = (slice(0, COUNTS[0]), slice(COUNTS[0], sum(COUNTS)))
    local = [mean_gradient(features[rows], weights, targets[rows]) for rows in shards]
    whole = mean_gradient(features, weights, targets)
    error = largest_difference(count_weighted_mean(local, COUNTS), whole)
    without = largest_difference(unweighted_mean(local), whole)
    yield Check(
        error <= LARGEST_ERROR,
        f"shards of 3 and 5, means joined by count: max error {error} against the global gradient, at most {LARGEST_ERROR}",
    )
    yield Check(
        without > LARGEST_ERROR,
        f"shards of 3 and 5, means joined without counts: max error {without}, which is seen to be wrong",
    )


def opportunity_checks() -> Iterator[Check]:
    """Task 3: what a step could gain, if the profile gave its local operation a share of 0.3. Derived, not measured."""
    for text, value, recorded in (
        ("share 0.3 twice as fast", conditional_speedup(0.3, 2.0), 1.1764705882352942),
        ("share 0.3 at no cost", speedup_limit(0.3), 1.4285714285714286),
    ):
        yield Check(value == recorded, f"conditional speed-up, {text}: {value}, recorded {recorded}")


def observed() -> Evidence:
    """Task 4: the audit beside this file, through the same engine as `kernel-audit check`."""
    question = conduct.Question(str(FIXTURES), cells="assessment")
    return conduct.check(question, lambda *_: None).evidence


def fixture_checks(evidence: Evidence) -> Iterator[Check]:
    """Task 4: every value of the frozen fixtures, the permutation, the refusals, and that the comparison can reject."""
    for cell in evidence.cells:
        yield Check(cell.outcome == "agrees" and cell.kernel_error_max == 0.0, cell_text(cell))
    many_rows = [cell for cell in evidence.cells if cell.shape[0] > 1]
    yield Check(
        bool(many_rows) and all(cell.permutation_holds for cell in many_rows),
        f"rows of both operands permuted, result restored: bitwise the same in {len(many_rows)} cells of several rows",
    )
    for refusal in evidence.refusals:
        yield Check(refusal.outcome == "refused", refusal_text(refusal))
    used = [control for control in evidence.controls if control.outcome != "not-applicable"]
    wrong = [f"{each.name} on {each.fixture}" for each in used if each.outcome != each.expected]
    yield Check(
        bool(used) and not wrong,
        f"known-wrong results rejected, references accepted: {len(used) - len(wrong)} of {len(used)} controls"
        + (f", not {wrong[0]}" if wrong else ""),
    )


def cell_text(cell: Cell) -> str:
    """A cell on one line: the two errors are never one number."""
    problem = "" if cell.outcome == "agrees" else f"{cell.outcome} {cell.code}: "
    return (
        f"{tuple(cell.shape)} {cell.dtype}: {problem}kernel error {cell.kernel_error_max} against the represented-input "
        f"oracle; gap {cell.representation_gap_max} to the original float32 data"
    )


def refusal_text(refusal: RefusalCheck) -> str:
    """What became of an input that the contract rejects, or of the door to a target."""
    if refusal.outcome != "refused":
        return f"{refusal.name}: {refusal.outcome}, promised {refusal.promised}; {refusal.raised} {refusal.message}".rstrip(
            "; "
        )
    if not refusal.raised:
        return f"{refusal.name}: {refusal.promised}"
    return f"refused before launch, {refusal.name}: {refusal.raised}: {refusal.message}"


def configuration_checks(evidence: Evidence) -> Iterator[Check]:
    """Task 4: two tiles and two slot counts, with one and the same float32 fixture for all four."""
    for fixture in evidence.frozen.plan.fixtures:
        data = originals(evidence.frozen.audit, fixture)
        x, y = data["x"], data["y"]
        if x.size == 1:
            continue  # one padded tile whatever the configuration
        for block, slots in CONFIGURATIONS:
            error = largest_difference(pipelined_axpy(x, y, block=block, buffers=slots), axpy_oracle(x, y))
            yield Check(error == 0.0, f"{x.shape}, {configuration_text(x.shape, block, slots)}: kernel error {error}")


def configuration_text(shape: tuple[int, int], block: tuple[int, int], slots: int) -> str:
    """What a configuration costs by its numbers alone: nothing of this was measured."""
    count = programs(shape, block)
    padded = count * math.prod(block)
    buffers = (2 * slots + OUTPUT_SLOTS) * math.prod(block) * np.dtype(np.float32).itemsize
    return (
        f"block {block}, {slots} input slots: programs {count}, padded elements {padded} "
        f"({padded - math.prod(shape)} beyond the matrix), data buffers by model {buffers} bytes"
    )


def largest_difference(actual: object, expected: object) -> float:
    """max |actual - expected|, infinite for arrays of different shapes."""
    one, other = np.asarray(actual), np.asarray(expected)
    return float(np.max(np.abs(one - other))) if one.shape == other.shape else math.inf


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
