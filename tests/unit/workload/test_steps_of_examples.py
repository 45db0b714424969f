"""The built-in regression and the examples: their steps are right with a baseline and with the candidate in place."""

from __future__ import annotations

import time
from pathlib import Path

import msgspec
import pytest

from kernel_audit.conduct import Question, evaluate
from kernel_audit.conduct.question import localised, roots_of
from kernel_audit.conduct.workload import WORKLOAD_PRELOAD, examine_workload
from kernel_audit.contract.step_sides import sides_of
from kernel_audit.errors import AuditFileError
from kernel_audit.kernels.audits import BUILT_IN
from kernel_audit.matrix.laboratory import PRELOAD, Laboratory, Limits
from kernel_audit.target.bench import Bench
from kernel_audit.target.bench import sides_of as programs_of
from kernel_audit.target.described import described_target
from kernel_audit.worker import Pool

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"


@pytest.mark.slow
@pytest.mark.parametrize("audit", ["regression", str(EXAMPLES / "mlp.py"), str(EXAMPLES / "scan16.py")])
def test_the_step_is_right_with_every_side_in_place(audit: str, tmp_path: Path):
    question = Question(audit=audit)
    with Pool(size=2, preload=(*PRELOAD, *WORKLOAD_PRELOAD)) as pool:
        stated, files = evaluate(question, pool, tmp_path / "audit")
        laboratory = Laboratory(pool, tmp_path / "work", roots_of(question), Limits(240.0))
        record = examine_workload(laboratory, stated, lambda *_: None, quick=True, processes=False)
        laboratory.close()
    assert record is not None and stated.workload is not None
    assert [each.note for each in record.runs if each.outcome != "right"] == []
    assert {each.side for each in record.runs} == {stated.baselines[0].name, "candidate"}
    assert all(each.kernels for each in record.runs if each.side == "candidate")
    assert all(each.collectives and each.program for each in record.runs)
    wrong = [each for each in record.aggregation if each.unweighted_codes]
    assert [each.counts for each in wrong] == [[3, 5], [2, 2, 2, 2, 2, 1, 1, 1]]
    assert all(
        each.unweighted_codes == ["unweighted-means"] and not each.weighted_codes
        for each in record.aggregation
        if each in wrong
    )
    assert Path(audit).name in files or audit == "regression"


@pytest.mark.slow
def test_the_policy_of_a_workload_holds_where_its_step_runs_and_where_it_is_compiled(tmp_path: Path):
    question = Question(audit=str(EXAMPLES / "scan16.py"))
    digests: dict[str, set[str]] = {}
    with Pool(size=2, preload=(*PRELOAD, *WORKLOAD_PRELOAD)) as pool:
        stated, _ = evaluate(question, pool, tmp_path / "audit")
        assert stated.workload is not None
        for policy in ("none", "all"):
            workload = msgspec.structs.replace(stated.workload, remat=policy)
            under = msgspec.structs.replace(stated, workload=workload)
            laboratory = Laboratory(pool, tmp_path / policy, roots_of(question), Limits(240.0))
            record = examine_workload(laboratory, under, lambda *_: None, quick=True, processes=False)
            laboratory.close()
            assert record is not None and [each.note for each in record.runs if each.outcome != "right"] == []
            bench = Bench(pool, tmp_path / f"{policy}-compiled", roots_of(question), Limits(240.0), under)
            exports = bench.exports(described_target("tpu:v5e"), programs_of(under)[:1])
            steps = [each.result.steps for each in exports if each.part == "step"]
            programs = [told["program"] for each in steps for told in each.values() if "program" in told]
            assert programs
            digests[policy] = {each.program for each in record.runs} | set(programs)
    assert not digests["none"] & digests["all"]


def test_baseline_and_candidate_are_put_into_the_step_in_both_dtypes_the_candidate_in_its_forms():
    audit = BUILT_IN["regression"]
    assert audit.workload is not None
    sides = [
        (each.name, each.dtype, each.configuration.get("form"), each.quick) for each in sides_of(audit, audit.workload)
    ]
    assert sides == [
        ("ordinary_gradient", "float32", None, False),
        ("ordinary_gradient", "bfloat16", None, False),
        ("candidate", "float32", "tpu", False),
        ("candidate", "bfloat16", "tpu", False),
        ("candidate", "float32", "triton", True),
    ]


def test_a_step_of_the_candidates_own_is_found_beside_its_file(tmp_path: Path):
    (tmp_path / "mine.py").write_text("def step(local, mesh, counts=None): ...\n")
    question = Question(audit="regression", candidate_step=f"{tmp_path / 'mine.py'}:step")
    assert localised(question).candidate_step == "mine.py:step"
    assert roots_of(question)[-1] == tmp_path
    with Pool(size=1, preload=PRELOAD) as pool:
        audit, _ = evaluate(localised(question), pool, tmp_path / "audit")
        assert audit.workload is not None and audit.workload.candidate_step is not None
        assert audit.workload.candidate_step.text == "mine.py:step"
        owners = {(each.name, each.owner) for each in sides_of(audit, audit.workload)}
        assert owners == {("ordinary_gradient", "workload"), ("candidate", "candidate")}
        with pytest.raises(AuditFileError, match="without a workload"):
            evaluate(Question(audit="axpy", candidate_step="mine.py:step"), pool, tmp_path / "other")


def test_a_step_that_is_not_there_is_said_at_once(tmp_path: Path):
    started = time.monotonic()
    with pytest.raises(AuditFileError, match="no such candidate file"):
        roots_of(Question(audit="regression", candidate_step=str(tmp_path / "nowhere.py:step")))
    assert time.monotonic() - started < 1
