"""Whole measurements against a device that is not there: what is asked of it, and what becomes of it."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from fake_device import FakeDevice
from sample_receipts import changed, measured

from kernel_audit.decision import decide
from kernel_audit.evidence import contradictions, read_receipts
from kernel_audit.matrix.laboratory import Limits
from kernel_audit.measure import Amount, Measuring
from kernel_audit.measure.campaign import Campaign, Part, audit_of, digests_of, plan
from kernel_audit.measure.checking import _not_made
from kernel_audit.measure.prepared import Prepared
from kernel_audit.records import FAILURE, FASTER, RECEIPT, SLOWER
from kernel_audit.worker import Pool

ROOT = Path(__file__).parents[3]
PRELOAD = ("kernel_audit.target.export_job", "kernel_audit.measure.reference_job", "kernel_audit.matrix.oracle_job")


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(size=2, preload=PRELOAD) as made:
        yield made


def measuring(pool: Pool, device: FakeDevice, work: Path, audit: str = "axpy-gpu") -> Measuring:
    named = audit_of(audit)
    amount = Amount(processes=8, pairs=96)
    return Measuring(named, "gpu", device, pool, work, [work], digests_of(named), Limits(120.0), amount)


def float32(comparison) -> bool:
    return comparison.dtype == "float32"


@pytest.fixture(scope="module")
def won(pool: Pool, tmp_path_factory):
    device = FakeDevice({"block=8x128": 0.8, "block=16x64": 0.9, "added_jnp": 0.95})
    return device, measuring(pool, device, tmp_path_factory.mktemp("won")).measure(only=float32)


def test_the_device_is_looked_at_first_and_ceilings_come_before_any_kernel(won):
    device, _ = won
    assert device.jobs[:3] == ["look", "ceilings", "check_programs"]


def test_the_best_of_each_side_is_confirmed_and_nothing_contradicts(won):
    _, (receipt,) = won
    chosen = {each.role: each.chosen for each in receipt.choices}
    assert chosen == {"candidate": "candidate block=8x128", "baseline": "added_jnp"}
    assert (receipt.kind, receipt.verdict.verdict, receipt.failures) == (RECEIPT, FASTER, [])
    assert contradictions(receipt, audit_of("axpy-gpu")) == []
    assert abs(receipt.verdict.ratio.ratio - 0.8 / 0.95) < 0.02
    assert len(receipt.pilots) == 3 and receipt.target == "gpu:h200"
    assert {each.fixture for each in receipt.checks} >= {"normal", "cancellation", "non-finite"}
    assert all(each.share_of_copy > 0 for each in receipt.achieved)


def test_a_loss_is_a_receipt_as_well(pool: Pool, tmp_path: Path):
    (receipt,) = measuring(pool, FakeDevice({"candidate": 1.3}), tmp_path).measure(only=float32)
    assert (receipt.kind, receipt.verdict.verdict) == (RECEIPT, SLOWER)


def test_a_configuration_that_fails_is_named_and_the_other_one_timed(pool: Pool, tmp_path: Path):
    device = FakeDevice(failing=("candidate block=8x128",))
    (receipt,) = measuring(pool, device, tmp_path).measure(only=float32)
    assert [(each.role, each.name, each.stage) for each in receipt.failures] == [
        ("candidate", "candidate block=8x128", "run")
    ]
    assert receipt.kind == RECEIPT and receipt.configuration == {"block": [16, 64]}
    assert len(receipt.candidates) == 2


def test_a_program_that_ends_its_process_costs_itself(pool: Pool, tmp_path: Path):
    device = FakeDevice(dies=("candidate block=16x64",))
    (receipt,) = measuring(pool, device, tmp_path).measure(only=float32)
    assert "signal 11" in receipt.failures[0].got and receipt.kind == RECEIPT
    assert device.jobs.count("check_programs") == 2


def test_a_program_that_breaks_the_device_for_its_process_costs_itself(pool: Pool, tmp_path: Path):
    device = FakeDevice(breaks=("candidate block=16x64",))
    (receipt,) = measuring(pool, device, tmp_path).measure(only=float32)
    assert [(each.role, each.name) for each in receipt.failures] == [("candidate", "candidate block=16x64")]
    assert "ILLEGAL_ADDRESS" in receipt.failures[0].got
    assert (receipt.kind, receipt.configuration) == (RECEIPT, {"block": [8, 128]})
    assert device.jobs.count("check_programs") == 2


@pytest.mark.parametrize(
    ("told", "refused", "role"),
    [
        ({}, "TimedOut: no step within 120 s", "host"),
        ({}, "Crashed: the worker was ended by signal 11", "host"),
        ({}, "ImportError: no module named kernel", "candidate"),
        ({"reason": {"kind": "raised", "text": "Crashed: so it says"}}, "raised: Crashed: so it says", "candidate"),
    ],
)
def test_a_worker_that_ends_at_export_is_not_the_candidates_failure(told: dict, refused: str, role: str):
    for_target = Prepared("candidate", "candidate", {}, None, told, refused)
    failure = _not_made(for_target)
    assert (failure.stage, failure.role, failure.got) == ("export", role, refused)
    evidence = changed(measured(), failures=[failure])
    codes = {each.code for each in decide(evidence).findings}
    assert ("target-failed" in codes, "fails-on-target" in codes) == (role == "host", role == "candidate")


def test_after_a_program_that_fails_as_it_runs_its_process_tries_no_other(tmp_path: Path, monkeypatch):
    import kernel_audit.measure.device_job as job

    tried: list[str] = []

    def checked(each: dict, *_: object) -> tuple[dict, dict]:
        tried.append(each["id"])
        return ({"failed": {"stage": each["stage"], "got": ""}} if each["stage"] else {}), {}

    monkeypatch.setattr(job, "_checked", checked)
    monkeypatch.setattr(job, "require_backend", lambda target: None)
    monkeypatch.setattr(job, "task", lambda **_: SimpleNamespace(generate=None, make=lambda seed: []))
    monkeypatch.setattr(job, "expected", lambda *_, **__: [])
    steps = SimpleNamespace(begin=lambda name: None, finish=lambda *_: None)
    programs = [{"id": name, "stage": stage} for name, stage in (("a", "load"), ("b", "run"), ("c", ""))]
    audit = msgspec.to_builtins(audit_of("axpy-gpu"))
    about = {"dims": {}, "binding": {}, "reference": {}, "fixtures": [], "large": False}
    job.check_programs(steps, target="gpu", audit=audit, programs=programs, **about)
    assert tried == ["a", "b"]


def test_where_nothing_of_a_side_runs_there_is_a_failure_record(pool: Pool, tmp_path: Path):
    device = FakeDevice(failing=("candidate block=8x128", "candidate block=16x64"))
    (receipt,) = measuring(pool, device, tmp_path).measure(only=float32)
    assert (receipt.kind, receipt.verdict, receipt.session) == (FAILURE, None, None)
    assert "time_comparisons" not in device.jobs and contradictions(receipt) == []


def test_a_campaign_keeps_to_its_budget_and_says_what_it_left_out(pool: Pool, tmp_path: Path):
    """The clock is the test's: every job of the device takes 20 seconds."""
    clock = [0.0]

    def pass_time(name: str) -> None:
        clock[0] += 20.0

    device = FakeDevice({"candidate": 0.8}, seconds=pass_time)
    parts = [Part("bias-relu-gpu", ("float32",)), Part("axpy-gpu", ("float32",))]
    campaign = Campaign(
        "gpu", device, pool, tmp_path / "work", tmp_path / "out", budget_s=300.0, parts=parts, now=lambda: clock[0]
    )
    receipts = campaign.run()
    assert [each.audit for each in receipts] == ["bias-relu-gpu"]
    (note,) = campaign.notes
    assert note.startswith("axpy-gpu (float32): left out") and f"of {300 - clock[0]:.0f} s that were left" in note
    assert read_receipts(tmp_path / "out" / "gpu-h200") == receipts
    said = (tmp_path / "out" / "summary.txt").read_text()
    assert re.search(r"bias-relu-gpu program float32: faster, 0\.(79|80)", said) and "left out" in said


@pytest.mark.slow
def test_the_regression_of_two_gibibytes_alone_and_in_its_step(pool: Pool, tmp_path: Path):
    device = FakeDevice({"candidate": 0.5, "one_read_scan": 0.6})
    receipts = measuring(pool, device, tmp_path, "regression").measure(only=float32)
    assert [each.part for each in receipts] == ["program", "step"]
    assert receipts[0].achieved[0].least_bytes > 2 << 30
    assert receipts[0].session.sides[0].floor_s > 0
    assert all(contradictions(each, audit_of("regression")) == [] for each in receipts)


@pytest.mark.parametrize("target", ["gpu", "tpu"])
def test_the_plan_is_within_eight_minutes_and_begins_with_the_regression(target: str):
    planned = plan(target)
    assert sum(each.about_s for each in planned if each.fits) <= 480
    assert planned[0].part.audit == "regression" and planned[0].fits
    assert len([each for each in planned if each.fits]) >= 3


def script():
    """scripts/device-receipts as a module."""
    loader = importlib.machinery.SourceFileLoader("device_receipts", str(ROOT / "scripts" / "device-receipts"))
    spec = importlib.util.spec_from_loader("device_receipts", loader)
    module = importlib.util.module_from_spec(spec)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(module)
    sys.dont_write_bytecode = writes
    return module


@pytest.mark.slow
def test_the_whole_script_against_the_fake_device(pool: Pool, tmp_path: Path, monkeypatch, capsys):
    from kernel_audit.worker import unconfined

    device = FakeDevice({"candidate": 0.8})
    monkeypatch.setattr(unconfined, "Unconfined", lambda environment=None: pool if environment else device)
    out = tmp_path / "receipts"
    code = script().main(
        ["--target", "gpu", "--audits", "axpy-gpu,bias-relu-gpu", "--out", str(out), "--budget", "900"]
    )
    assert code == 0
    assert len(read_receipts(out / "gpu-h200")) == 4
    assert capsys.readouterr().out.count("faster") == 4
