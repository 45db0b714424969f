"""Twins with one optimisation off, on a device that is not there: they are in receipt and table, and decide nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
import sample_evidence
from fake_device import Died, FakeDevice
from sample_evidence import replaced

from kernel_audit.contract import Ablation, Audit, FunctionRef, Worth
from kernel_audit.decision.target_rules import on_targets
from kernel_audit.evidence import Evidence, contradictions
from kernel_audit.matrix.laboratory import Limits
from kernel_audit.measure import Amount, Measuring, estimated_s, planned
from kernel_audit.measure.campaign import audit_of, digests_of
from kernel_audit.measure.comparison import target_here
from kernel_audit.measure.prepared import Preparing
from kernel_audit.records import FASTER, RECEIPT, Receipt, digest_bytes, digest_of
from kernel_audit.report import full_text, render_page
from kernel_audit.report.ablations import ITSELF, SCOPE, AblationRow, ablation_rows, ablation_texts
from kernel_audit.statistics import pilot_ratio
from kernel_audit.worker import Pool

PRELOAD = ("kernel_audit.target.export_job", "kernel_audit.measure.reference_job", "kernel_audit.matrix.oracle_job")
SOURCE = """
import jax
from jax.experimental import pallas as pl
from jax.sharding import PartitionSpec

from kernel_audit.kernels.triton_axpy import triton_axpy


def plain(x, y, **keywords):
    return triton_axpy(x, y, **keywords)


def step(local, mesh):
    return (lambda x, y: local(x, y) * 2), (PartitionSpec(), PartitionSpec())


def copied(x_ref, out_ref):
    out_ref[...] = x_ref[...]


def through_a_kernel(x, y):
    return plain_sum(pl.pallas_call(copied, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))(x), y)


def plain_sum(x, y):
    return x + y
"""
TWINS = [
    Ablation(name="without-masks", function=FunctionRef(file="twin.py", name="plain")),
    Ablation(name="small-blocks", changed={"block": [4, 32]}),
]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(size=2, preload=PRELOAD) as made:
        yield made


def audit(twins: list[Ablation] = TWINS) -> Audit:
    return msgspec.structs.replace(audit_of("axpy-gpu"), ablations=twins)


def measured(pool: Pool, device: FakeDevice, work: Path, named: Audit | None = None, until_s: float = 1e12) -> Receipt:
    """The receipt of the kernel alone in float32."""
    (work / "twin.py").write_text(SOURCE)
    named = named or audit()
    amount = Amount(processes=8, pairs=96)
    measuring = Measuring(
        named, "gpu", device, pool, work, [work], sources(named), Limits(120.0), amount, until_s=until_s
    )
    return measuring.measure(only=lambda each: each.dtype == "float32")[0]


def sources(named: Audit) -> dict[str, str]:
    return {**digests_of(named), "twin.py": digest_bytes(SOURCE.encode())}


def evidence(receipts: list[Receipt], named: Audit | None = None) -> Evidence:
    """Evidence of the audit with these receipts, of which only audit, sources and receipts are right."""
    base = sample_evidence.agreeing().evidence
    named = named or audit()
    return replace(base, frozen=replaced(base.frozen, audit=named, sources=sources(named)), receipts=receipts)


def codes(receipts: list[Receipt]) -> set[str]:
    return {each.code for regime in on_targets(evidence(receipts)).regimes for each in regime.findings}


@pytest.fixture(scope="module")
def told(pool: Pool, tmp_path_factory) -> tuple[FakeDevice, Receipt]:
    device = FakeDevice(
        {"candidate block=8x128": 0.8, "candidate block=16x64": 0.9, "without-masks": 0.5, "small": 0.95}
    )
    return device, measured(pool, device, tmp_path_factory.mktemp("twins"))


def test_twins_follow_the_chosen_candidate_in_its_configuration(told):
    _, receipt = told
    assert [each.name for each in receipt.ablations] == [
        "candidate block=8x128",
        "without-masks block=8x128",
        "small-blocks",
    ]
    ratios = [each.ratio for each in receipt.ablations]
    assert ratios == pytest.approx([0.8, 0.5, 0.95], abs=0.02)
    assert all(each.pairs and each.session_digest for each in receipt.ablations)
    assert {(each.role, each.name) for each in receipt.checks if each.role == "ablation"} == {
        ("ablation", "without-masks block=8x128"),
        ("ablation", "small-blocks"),
    }
    assert contradictions(receipt) == [] and receipt.failures == []


def test_a_quicker_twin_is_neither_chosen_nor_counted(told):
    _, receipt = told
    chosen = {each.role: each.chosen for each in receipt.choices}
    assert chosen["candidate"] == "candidate block=8x128" and receipt.verdict.verdict == FASTER
    assert receipt.verdict.ratio.ratio == pytest.approx(0.8, abs=0.02)
    assert receipt.candidates == audit().configurations()
    assert {each.role for each in receipt.programs} == {"candidate", "baseline"}
    assert not any(
        "without" in each.name or "small" in each.name for choice in receipt.choices for each in choice.pilots
    )


def test_twins_run_after_everything_that_decides(told):
    device, _ = told
    assert device.jobs == ["look", "ceilings", "check_programs", *["time_comparisons"] * 10, "check_programs"] + (
        ["time_comparisons"] * 2
    )


def test_the_table_shows_twins_beside_the_candidate(told):
    _, receipt = told
    rows = ablation_rows(evidence([receipt]))
    assert [(each.twin, each.in_step) for each in rows] == [
        (ITSELF, "not measured"),
        ("without-masks", "not measured"),
        ("small-blocks", "not measured"),
    ]
    assert rows[0].regime == "gpu:h200, float32" and rows[0].alone.endswith(" at block=8x128")
    assert [each.alone[:4] for each in rows] == [f"{each.ratio:.3f}"[:4] for each in receipt.ablations]
    sample = sample_evidence.agreeing()
    text = full_text(evidence([receipt]), sample.decision)
    page = render_page(evidence([receipt]), sample.decision, {}).decode()
    assert " ".join(f"{SCOPE}.".split()) in " ".join(text.split()) and f'<p class="lead">{SCOPE}.</p>' in page
    assert '<th scope="row">without-masks</th><td>gpu:h200, float32</td>' in page


def test_a_wrong_twin_is_named_and_harmless(pool: Pool, told, tmp_path: Path):
    device = FakeDevice({"candidate block=8x128": 0.8, "small": 0.95}, wrong=("without-masks block=8x128",))
    receipt = measured(pool, device, tmp_path)
    (failure,) = receipt.failures
    assert (failure.stage, failure.role, failure.name) == ("compare", "ablation", "without-masks block=8x128")
    assert [each.name for each in receipt.ablations] == ["candidate block=8x128", "small-blocks"]
    assert (receipt.kind, receipt.verdict.verdict, contradictions(receipt)) == (RECEIPT, FASTER, [])
    assert codes([receipt]) == codes([told[1]])
    assert ablation_rows(evidence([receipt]))[1].alone.startswith("left out: the results on ")


@pytest.mark.parametrize("how", ["failing", "dies"])
def test_twins_that_fail_or_end_their_process_leave_everything_else_as_it_was(pool, told, tmp_path: Path, how: str):
    names = ("without-masks block=8x128", "small-blocks")
    receipt = measured(pool, FakeDevice({"candidate block=8x128": 0.8}, **{how: names}), tmp_path)
    assert [(each.stage, each.role, each.name) for each in receipt.failures] == [
        ("run", "ablation", each) for each in names
    ]
    assert (receipt.kind, receipt.verdict.verdict, receipt.ablations) == (RECEIPT, FASTER, [])
    assert contradictions(receipt) == [] and codes([receipt]) == codes([told[1]])
    assert {each.alone for each in ablation_rows(evidence([receipt]))[:1]} == {"no twin was timed"}


def test_a_device_that_is_lost_to_a_twin_costs_the_twins_only(pool: Pool, tmp_path: Path):
    class Lost(FakeDevice):
        def _check_programs(self, told, *, programs, **more):
            if programs[0]["role"] == "ablation":
                raise Died
            super()._check_programs(told, programs=programs, **more)

    receipt = measured(pool, Lost({"candidate block=8x128": 0.8}), tmp_path)
    assert receipt.kind == RECEIPT and len(receipt.failures) == 2
    assert all("the check on the target did not start" in each.got for each in receipt.failures)


def test_a_twin_that_cannot_be_made_is_told(pool: Pool, tmp_path: Path):
    receipt = measured(
        pool, FakeDevice({"candidate": 0.8}), tmp_path, audit([Ablation(name="other", changed={"blocks": 3})])
    )
    (failure,) = receipt.failures
    assert (failure.stage, failure.role) == ("export", "ablation") and "blocks" in failure.got
    assert receipt.kind == RECEIPT


def test_a_twin_that_a_cpu_would_interpret_is_left_out_before_anything_runs(pool: Pool, tmp_path: Path):
    (tmp_path / "twin.py").write_text(SOURCE)
    place = FunctionRef(file="twin.py", name="plain_sum")
    twins = [Ablation(name="kernel", function=FunctionRef(file="twin.py", name="through_a_kernel"))]
    named = msgspec.structs.replace(audit(twins), candidate=place, tuning={}, door=None)
    target, limits = target_here("cpu", "cpu", 1), Limits(120.0)
    comparisons = planned(named, "cpu")[:1]
    (ready,) = Preparing(pool, tmp_path / "work", [tmp_path], limits, named).ready(target, comparisons)
    (twin,), (candidate,) = ready.of("ablation"), ready.of("candidate")
    assert twin.place is None and twin.refused.startswith("an interpreted kernel is never timed")
    assert candidate.place is not None


def test_a_twin_that_is_wrong_only_when_it_is_timed_gives_no_ratio(pool: Pool, tmp_path: Path):
    class Wrong(FakeDevice):
        def _timed(self, each, plan, index):
            value = super()._timed(each, plan, index)
            if "without" in each["names"]["candidate"]:
                for check in value["process"]["checks"]:
                    check["differing"] = int(check["role"] == "candidate")
            return value

    receipt = measured(pool, Wrong({"candidate block=8x128": 0.8}), tmp_path)
    (failure,) = receipt.failures
    assert (failure.role, failure.what, failure.got) == (
        "ablation",
        "its samples are refused",
        "timed-output-differs",
    )
    assert [each.name for each in receipt.ablations] == ["candidate block=8x128", "small-blocks"]
    assert len(receipt.pilots) == 5 and contradictions(receipt) == []
    refused = next(each for each in receipt.pilots if each.sides[0].name.startswith("without"))
    ratio, pairs = pilot_ratio(refused)
    claimed = replaced(
        receipt.ablations[1],
        name=refused.sides[0].name,
        ratio=ratio,
        pairs=pairs,
        session=refused.id,
        session_digest=digest_of(refused),
    )
    assert contradictions(replaced(receipt, failures=[], ablations=[receipt.ablations[0], claimed]))


def test_twins_are_what_is_left_out_where_the_time_is_spent(pool: Pool, tmp_path: Path, monkeypatch):
    jobs: list[str] = []
    clock = SimpleNamespace(monotonic=lambda: 2.0 if jobs.count("time_comparisons") == 10 else 0.0)
    monkeypatch.setattr("kernel_audit.measure.sessions.time", clock)
    device = FakeDevice({"candidate block=8x128": 0.8}, seconds=jobs.append)
    receipt = measured(pool, device, tmp_path, until_s=1.0)
    assert receipt.kind == RECEIPT and len(receipt.session.processes) == 8
    assert {each.got for each in receipt.failures} == {"not checked, the time for the measurement was spent"}


def test_alone_beside_the_complete_step(pool: Pool, tmp_path: Path):
    (tmp_path / "twin.py").write_text(SOURCE)
    worth = Worth(objective="step-time", margin=0.02, step="twin.py:step")
    named = msgspec.structs.replace(audit(TWINS[:1]), worth=worth)
    device = FakeDevice({"candidate block=8x128": 0.8, "without": 0.9})
    amount = Amount(processes=8, pairs=96)
    measuring = Measuring(named, "gpu", device, pool, tmp_path, [tmp_path], sources(named), Limits(120.0), amount)
    receipts = measuring.measure(only=lambda each: each.dtype == "float32")
    assert [each.part for each in receipts] == ["program", "step"]
    itself, twin = ablation_rows(evidence(receipts, named))
    for row, ratio in ((itself, 0.8), (twin, 0.9)):
        for cell in (row.alone, row.in_step):
            told, _, configuration = cell.partition(" at ")
            assert float(told) == pytest.approx(ratio, abs=0.02) and configuration == "block=8x128"
    assert "alone " in ablation_texts(evidence(receipts, named))[1]


def test_a_single_candidate_has_no_pilots_to_choose_on_and_its_twin_a_table(pool: Pool, tmp_path: Path):
    named = msgspec.structs.replace(audit(TWINS[:1]), tuning={"block": [[8, 128]]})
    receipt = measured(pool, FakeDevice({"candidate": 0.8, "without": 0.9}), tmp_path, named)
    assert next(each for each in receipt.choices if each.role == "candidate").pilots == []
    assert [each.name for each in receipt.ablations] == ["candidate", "without-masks"]
    assert contradictions(receipt) == []
    assert ablation_rows(evidence([receipt], named))[0].alone == f"{receipt.ablations[0].ratio:.3f}"


ALTERED = {
    "a twin's sample": lambda receipt: {"pilots": [*receipt.pilots[:-1], sampled(receipt.pilots[-1])]},
    "the candidate's sample": lambda receipt: {"pilots": [sampled(receipt.pilots[0]), *receipt.pilots[1:]]},
    "a ratio": lambda receipt: {"ablations": changed(receipt, 1, ratio=0.1)},
    "a digest": lambda receipt: {"ablations": changed(receipt, 1, session_digest="")},
    "a name": lambda receipt: {"ablations": changed(receipt, 1, name="another")},
    "the order": lambda receipt: {"ablations": receipt.ablations[::-1]},
    "twice": lambda receipt: {"ablations": [*receipt.ablations, receipt.ablations[-1]]},
    "only the candidate": lambda receipt: {"ablations": receipt.ablations[:1]},
    "without samples": lambda receipt: {"pilots": receipt.pilots[:-1]},
}


def sampled(session):
    """The session with one sample altered by so little that no median moves."""
    first, *rest = session.processes
    left = [first.comparison.left_s[0] * 1.0000001, *first.comparison.left_s[1:]]
    return replaced(session, processes=[replaced(first, comparison=replaced(first.comparison, left_s=left)), *rest])


def changed(receipt: Receipt, place: int, **changes):
    return [replaced(each, **changes) if at == place else each for at, each in enumerate(receipt.ablations)]


@pytest.mark.parametrize("what", ALTERED)
def test_whatever_is_altered_of_a_twin_is_found(told, what: str):
    _, receipt = told
    assert contradictions(replaced(receipt, **ALTERED[what](receipt)))


def test_no_audit_without_twins_has_a_table(told):
    assert ablation_rows(sample_evidence.agreeing().evidence) == []
    assert ablation_rows(evidence([])) == []
    assert isinstance(ablation_rows(evidence([told[1]]))[0], AblationRow)


def test_the_plan_counts_twins():
    comparisons = planned(audit(), "gpu")
    without = estimated_s(comparisons, 3, 10, 600)
    assert estimated_s(comparisons, 3, 10, 600, 1) > without + 20
    assert estimated_s(comparisons, 3, 10, 600, 2) > estimated_s(comparisons, 3, 10, 600, 1)
