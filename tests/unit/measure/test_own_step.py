"""Complete steps with operands, options and inputs of their own: what they are timed on, and what one costs that fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from fake_device import KIND, FakeDevice

from kernel_audit.conduct.evaluation import evaluate
from kernel_audit.conduct.question import Question
from kernel_audit.contract import Audit
from kernel_audit.evidence import contradictions, read_receipts
from kernel_audit.matrix.laboratory import Limits
from kernel_audit.measure import Amount, Measuring
from kernel_audit.measure.audit_task import task
from kernel_audit.measure.comparison import audit_at, comparisons_of, least_bytes, operand_bytes, put_to, target_here
from kernel_audit.measure.prepared import Preparing, Ready
from kernel_audit.records import FAILURE, RECEIPT
from kernel_audit.worker import Pool

HERE = Path(__file__).parent
PRELOAD = ("kernel_audit.target.export_job", "kernel_audit.measure.reference_job", "kernel_audit.matrix.oracle_job")
SIZES = {"n": 256, "k": 12, "h": 24, "o": 3}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(size=2, preload=PRELOAD) as made:
        yield made


def audit_of(pool: Pool, work: Path, name: str) -> Audit:
    return evaluate(Question(audit=f"{HERE / 'step_audit.py'}:{name}"), pool, work / "audit")[0]


@pytest.fixture(scope="module")
def own(pool: Pool, tmp_path_factory) -> tuple[Audit, Ready]:
    """The audit, and its step ready to be timed."""
    work = tmp_path_factory.mktemp("own")
    audit = audit_of(pool, work, "own-step")
    target = target_here("gpu", KIND, 1)
    comparisons = [each for each in comparisons_of(audit, target.name) if each.part == "step"]
    (ready,) = Preparing(pool, work, [HERE], Limits(120.0), audit).ready(target, comparisons)
    return audit, ready


def made_task(audit: Audit, ready: Ready, *, large: bool):
    put, dims = put_to(audit, ready.comparison)
    return task(
        audit=msgspec.to_builtins(put),
        dims=dims,
        binding={},
        reference=ready.reference,
        budgets=[1e-5] * 3,
        large=large,
    )


@pytest.mark.parametrize("large", [False, True])
def test_a_step_is_timed_on_the_values_of_its_workload(own, large: bool):
    made = made_task(*own, large=large)
    first, again, other = (list(map(np.asarray, (made.generate or made.make)(seed))) for seed in (1, 1, 2))
    assert [each.shape for each in first] == [(256, 12), (12, 24), (24,), (24, 3), (256, 3)]
    assert abs(first[0].mean() - 3) < 0.05 and abs(first[4].mean() + 5) < 0.05
    assert all(np.array_equal(*pair) for pair in zip(first, again, strict=True))
    assert not np.array_equal(first[0], other[0])
    row = next(place for place in range(256) if (first[0] == other[0][place]).all(axis=1).any())
    same = (first[0] == other[0][row]).all(axis=1)
    assert (first[4][same] == other[4][row]).all()  # an example stays together


def test_the_reference_is_the_step_with_its_options_in_float64(own):
    made = made_task(*own, large=False)
    X, W1, b1, W2, y = (each.astype(np.float64) for each in made.make(5))
    hidden = np.maximum(X @ W1 + b1, 0)
    off = hidden @ W2 - y
    slope = (2 / len(X) * off @ W2.T) * (hidden > 0)
    wanted = [W1 - 0.5 * X.T @ slope, b1 - 0.5 * slope.sum(axis=0), np.mean(np.sum(off**2, axis=1))]
    for ours, theirs in zip(made.expected(made.make(5)), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_bytes_are_those_of_the_step(own):
    audit, ready = own
    shapes = [each.shape(SIZES) for each in audit.workload.operands]
    assert operand_bytes(audit, ready.comparison) == 4 * sum(int(np.prod(each)) for each in shapes)
    assert least_bytes(audit, ready.comparison) - operand_bytes(audit, ready.comparison) == 4 * (12 * 24 + 24)


def test_a_sweep_of_the_candidate_leaves_a_step_with_sizes_of_its_own_alone(own):
    audit, _ = own
    assert [each.part for each in comparisons_of(audit, "gpu:h200", dims={"m": 16, "n": 16})] == ["program"]
    assert audit_at(audit, {"m": 16, "n": 16}).workload.declared == SIZES


def test_a_step_without_a_reference_costs_itself_and_not_the_kernel(pool: Pool, tmp_path: Path):
    audit = audit_of(pool, tmp_path, "broken-step")
    amount = Amount(processes=8, pairs=96)
    device = FakeDevice({"candidate": 0.8})
    alone, step = Measuring(audit, "gpu", device, pool, tmp_path, [HERE], {}, Limits(120.0), amount).measure()
    assert (alone.part, alone.kind, alone.failures) == ("program", RECEIPT, [])
    assert (step.part, step.kind) == ("step", FAILURE)
    (failure,) = step.failures
    assert (failure.stage, failure.role) == ("reference", "host") and "this step cannot be made" in failure.got
    assert contradictions(step) == []


def of_the_step(pool: Pool, work: Path, errors: dict[str, float]):
    """The step's receipt, from a device on which programs are so far off."""
    audit, amount = audit_of(pool, work, "own-step"), Amount(processes=8, pairs=96)
    measuring = Measuring(audit, "gpu", FakeDevice(errors=errors), pool, work, [HERE], {}, Limits(120.0), amount)
    (receipt,) = measuring.measure(only=lambda each: each.part == "step")
    return receipt


def test_a_baseline_that_returns_zeros_makes_no_zeros_right(pool: Pool, tmp_path: Path):
    receipt = of_the_step(pool, tmp_path, {"selected": 1.0, "candidate": 1.0})
    failed = {(each.role, each.name, each.stage): each.got for each in receipt.failures}
    assert set(failed) == {("baseline", "selected", "compare"), ("candidate", "candidate", "compare")}
    assert "times as far as the best baseline" in failed["baseline", "selected", "compare"]
    assert receipt.kind == FAILURE


def test_a_baseline_that_is_wrong_costs_itself(pool: Pool, tmp_path: Path):
    receipt = of_the_step(pool, tmp_path, {"selected": 1.0})
    assert [(each.role, each.name) for each in receipt.failures] == [("baseline", "selected")]
    assert receipt.kind == RECEIPT and contradictions(receipt) == []


def test_where_every_baseline_is_wrong_the_candidate_is_not_accused(pool: Pool, tmp_path: Path):
    receipt = of_the_step(pool, tmp_path, {"relu": 1.0, "selected": 1.0})
    assert {each.role for each in receipt.failures} == {"baseline"} and receipt.kind == FAILURE


@pytest.mark.slow
def test_a_step_of_its_own_on_this_cpu(tmp_path: Path):
    options = ["--target", "cpu", "--processes", "8", "--pairs", "40", "--out", "out", "--json"]
    place = f"{HERE / 'step_audit.py'}:own-step"
    command = [sys.executable, "-m", "kernel_audit", "measure", place, *options]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["receipts"]) == 2
    receipts = {each.part: each for each in read_receipts(tmp_path / "out")}
    assert all(each.kind == RECEIPT and contradictions(each) == [] for each in receipts.values())
    assert receipts["step"].dims == {"m": 8, "n": 16}
