"""`decide OLD --receipts DIR --out NEW` as a user calls it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import sample_evidence
import sample_receipts
from sample_evidence import replaced

from kernel_audit.decision import decide, verify
from kernel_audit.evidence import bundle_digest, read_bundle, read_manifest, write_bundle
from kernel_audit.records import digest_of, encode


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kernel_audit", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    evidence = sample_receipts.evidence()
    write_bundle(evidence, decide(evidence), sample_evidence.SOURCES, {}, b"page", tmp_path / "old")
    return tmp_path / "old"


def written(folder: Path, receipts: list) -> Path:
    folder.mkdir()
    for number, each in enumerate(receipts):
        (folder / f"{number}.json").write_bytes(encode(each))
    return folder


def test_a_new_bundle_names_its_parent_and_keeps(old: Path, tmp_path: Path):
    before = {each: each.read_bytes() for each in old.rglob("*") if each.is_file()}
    folder = written(tmp_path / "receipts", sample_receipts.receipts(sample_receipts.evidence().frozen.audit))
    done = run("decide", old, "--receipts", folder, "--out", tmp_path / "new")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("decision   keep")
    assert read_manifest(tmp_path / "new").predicate.parent == bundle_digest(old)
    assert (tmp_path / "new" / "figures" / "decision.svg").is_file()
    assert (tmp_path / "new" / "figures" / "roofline-tpu-v5-lite.json").is_file()
    assert run("verify", tmp_path / "new").returncode == 0
    page = (tmp_path / "new" / "report.html").read_text()
    assert '<section id="receipts">' in page and "Ratios with their intervals" in page
    assert run("report", tmp_path / "new", "--html", tmp_path / "again.html").returncode == 0
    assert (tmp_path / "again.html").read_text() == page
    assert "program, float32, tpu:v5e (TPU v5 lite): faster" in " ".join(run("report", tmp_path / "new").stdout.split())
    assert {each: each.read_bytes() for each in old.rglob("*") if each.is_file()} == before


def test_a_stale_receipt_is_kept_and_ignored_by_name(old: Path, tmp_path: Path):
    receipts = sample_receipts.receipts(sample_receipts.evidence().frozen.audit)
    stale = [replaced(each, sources={label: digest_of("older") for label in each.sources}) for each in receipts]
    done = run("decide", old, "--receipts", written(tmp_path / "receipts", stale), "--out", tmp_path / "new")
    assert done.returncode == 0 and done.stdout.startswith("decision   await-target-evidence")
    evidence, decision = read_bundle(tmp_path / "new")
    assert len(evidence.receipts) == 4 and verify(tmp_path / "new") == []
    assert [each.code for each in decision.findings].count("receipt-other-source") == 4


def test_what_cannot_be_honoured(old: Path, tmp_path: Path):
    other = [
        replaced(each, audit="tripling") for each in sample_receipts.receipts(sample_receipts.evidence().frozen.audit)
    ]
    folder = written(tmp_path / "receipts", other)
    for arguments, said in (
        (("--receipts", folder), "go together"),
        (("--receipts", folder, "--out", tmp_path / "new"), "no receipt is of this audit"),
        (("--receipts", tmp_path / "nowhere", "--out", tmp_path / "new"), "cannot be read"),
        (("--receipts", folder, "--out", old / "inside"), "no bundle can be made at this place"),
    ):
        done = run("decide", old, *arguments)
        assert (done.returncode, done.stdout) == (2, "") and said in done.stderr
    assert not (tmp_path / "new").exists()
