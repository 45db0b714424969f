"""The check itself is put out of order, and the decision must say so instead of judging the kernel.

The workers run once; what they told is then assembled with an honest comparison and with spoiled ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import pytest

from kernel_audit.conduct import Question, Request, evidence_of
from kernel_audit.contract import Audit, Oracle, reference_to
from kernel_audit.decision import decide, exit_code
from kernel_audit.evidence import Evidence
from kernel_audit.kernels.audits import BUILT_IN
from kernel_audit.matrix import assemble, controls
from kernel_audit.matrix.assemble import Assembly
from kernel_audit.matrix.check import Matrix
from kernel_audit.matrix.compare import Comparison, compare
from kernel_audit.matrix.laboratory import Laboratory
from kernel_audit.matrix.observe import observe
from kernel_audit.matrix.plan import sequence_plan
from kernel_audit.matrix.stages import Observed, Stages
from kernel_audit.records import AWAIT, REVISE, Decision, Plan
from kernel_audit.worker import Pool

LATE_SEED = 3
REFERENCES = "kernel_audit.kernels.axpy_references"


@dataclass(frozen=True)
class Observation:
    """An audit, its plan and what the workers told; their folders are still there."""

    audit: Audit
    plan: Plan
    seen: Observed

    def decided(self) -> tuple[Evidence, Decision]:
        """Evidence and decision with whatever comparison is in place now."""
        request = Request(
            audit=self.audit,
            cells="lesson",
            quick=False,
            late_seed=LATE_SEED,
            late_seed_commitment="",
            sources={},
            tool_version="",
        )
        matrix = Matrix(self.plan, Assembly(self.audit, self.plan, self.seen), {}, {})
        evidence, _ = evidence_of(Question(audit=self.audit.name), request, matrix, {})
        return evidence, decide(evidence)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(size=1) as made:
        yield made


@contextmanager
def observed(pool: Pool, work: Path, **changes: object) -> Iterator[Observation]:
    """The first two lesson shapes of `axpy`, with fields of the audit changed."""
    audit = BUILT_IN["axpy"]
    short = [msgspec.structs.replace(each, shapes=each.shapes[:2]) for each in audit.sequences]
    audit = msgspec.structs.replace(audit, sequences=short, refusals=[], door=None, **changes)
    laboratory = Laboratory(pool, work, [work], size=1)
    try:
        plan = sequence_plan(audit, "lesson")
        yield Observation(audit, plan, observe(Stages(audit, laboratory), plan))
    finally:
        laboratory.close()


@pytest.fixture(scope="module")
def honest(pool: Pool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observation]:
    with observed(pool, tmp_path_factory.mktemp("honest")) as found:
        yield found


def codes(decision: Decision) -> set[str]:
    return {each.code for each in decision.findings}


def replace_comparison(monkeypatch: pytest.MonkeyPatch, spoiled: Callable[..., Comparison]) -> None:
    """Puts another comparison in the place of the one that judges cells, controls and baselines."""
    for module in (assemble, controls):
        monkeypatch.setattr(module, "compare", spoiled)


def test_nothing_spoiled_gives_a_decision(honest: Observation):
    _, decision = honest.decided()
    assert decision.decision == AWAIT


def test_a_blind_comparison_is_caught_by_the_controls(honest: Observation, monkeypatch: pytest.MonkeyPatch):
    replace_comparison(monkeypatch, lambda audit, actual, arrays: Comparison(error_max=0.0))
    _, decision = honest.decided()
    assert (decision.decision, exit_code(decision)) == (None, 2)
    assert "control-accepted" in codes(decision)


def test_a_comparison_that_skips_the_last_row_is_caught(honest: Observation, monkeypatch: pytest.MonkeyPatch):
    def without_last_row(audit, actual, arrays):
        cut = {name: each[:-1] if each.ndim and len(each) > 1 else each for name, each in arrays.items()}
        return compare(audit, [each[:-1] if len(each) > 1 else each for each in actual], cut)

    replace_comparison(monkeypatch, without_last_row)
    evidence, decision = honest.decided()
    assert (decision.decision, "control-accepted" in codes(decision)) == (None, True)
    wrong = {each.name for each in evidence.controls if each.outcome not in (each.expected, "not-applicable")}
    assert wrong == {"last-row-wrong"}


def test_a_comparison_that_rejects_everything_is_caught(honest: Observation, monkeypatch: pytest.MonkeyPatch):
    replace_comparison(monkeypatch, lambda audit, actual, arrays: Comparison("values-differ", differing=1))
    _, decision = honest.decided()
    assert decision.decision is None
    assert {"oracle-rejected", "baseline-rejected"} <= codes(decision)


def test_a_comparison_with_a_tolerance_is_caught(honest: Observation, monkeypatch: pytest.MonkeyPatch):
    def lenient(audit, actual, arrays):
        found = compare(audit, actual, arrays)
        small = found.code == "values-differ" and not found.nonfinite_mismatches and (found.error_max or 0) < 1e-2
        return Comparison(error_max=found.error_max) if small else found

    replace_comparison(monkeypatch, lenient)
    _, decision = honest.decided()
    assert (decision.decision, "control-accepted" in codes(decision)) == (None, True)


def test_a_result_that_is_changed_on_its_way_is_the_kernels_fault(honest: Observation, monkeypatch: pytest.MonkeyPatch):
    """The other side: with the check in order, one wrong element of one result is enough for *revise*."""
    leaves = assemble.leaves

    def with_a_wrong_element(arrays, name):
        found = leaves(arrays, name)
        if name != "out" or not any(each.shape == (8, 128) for each in found):
            return found
        changed = found[0].copy()
        changed[7, 127] = np.nextafter(np.float32(changed[7, 127]), np.float32(np.inf)).astype(changed.dtype)
        return [changed]

    judge_baseline = assemble.judge_baseline

    def right_baseline(*arguments):
        *about, _, arrays = arguments
        return judge_baseline(*about, leaves(arrays, "expected"), arrays)

    monkeypatch.setattr(assemble, "leaves", with_a_wrong_element)
    monkeypatch.setattr(assemble, "judge_baseline", right_baseline)
    evidence, decision = honest.decided()
    assert decision.decision == REVISE
    assert {each.fixture for each in evidence.cells if each.outcome == "differs"} == {"lesson-8x128"}


def test_a_wrong_oracle_is_caught_by_the_baselines(pool: Pool, tmp_path: Path):
    wrong = Oracle(kind="independent", function=reference_to(f"{REFERENCES}:axpy_swapped", where="test"))
    with observed(pool, tmp_path, oracle=wrong) as found:
        _, decision = found.decided()
    assert (decision.decision, exit_code(decision)) == (None, 2)
    assert "baseline-rejected" in codes(decision)
    assert "values-differ" not in codes(decision)
