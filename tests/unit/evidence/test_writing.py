"""A bundle is written whole, once, under the names that the design gives."""

import hashlib
import json
import os
import stat
import subprocess
from pathlib import Path

import pytest
import sample_evidence

from kernel_audit.errors import BundleError
from kernel_audit.evidence import bundle_digest, is_bundle, read_manifest, verify_integrity, write_bundle, writing
from kernel_audit.records import digest_bytes, digest_file, digest_of, encode

FIGURES = {"precision-gap.svg": b"<svg/>", "precision-gap.json": b"{}"}


def write(out: Path, sample: sample_evidence.Sample, **changes: object) -> None:
    given = {
        "evidence": sample.evidence,
        "decision": sample.decision,
        "sources": sample.sources,
        "figures": FIGURES,
        "page": b"<!doctype html>",
        "out": out,
    }
    write_bundle(**{**given, **changes})


def names(folder: Path) -> list[str]:
    return sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file())


def test_files_are_those_of_the_design(tmp_path: Path) -> None:
    write(tmp_path / "b", sample_evidence.agreeing())
    assert names(tmp_path / "b") == [
        "audit.json",
        "cells.jsonl",
        "compiled.jsonl",
        "controls.jsonl",
        "decision.json",
        "environment.json",
        "figures/precision-gap.json",
        "figures/precision-gap.svg",
        "kernels.json",
        "manifest.json",
        "manifest.sha256",
        "programs.json",
        "refusals.jsonl",
        "report.html",
        "sources/doubling/kernel.py",
    ]


def test_manifest_is_an_in_toto_statement_of_every_other_file(tmp_path: Path) -> None:
    sample, out = sample_evidence.agreeing(), tmp_path / "b"
    write(out, sample, parent_digest="sha256:" + "0" * 64)
    statement = json.loads((out / "manifest.json").read_bytes())
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert {each["name"] for each in statement["subject"]} == set(names(out)) - {"manifest.json", "manifest.sha256"}
    for each in statement["subject"]:
        assert each["digest"] == {"sha256": hashlib.sha256((out / each["name"]).read_bytes()).hexdigest()}
    assert statement["predicate"] == {
        "tool_version": "0.1.0",
        "decision": "await-target-evidence",
        "audit": "doubling",
        "audit_digest": digest_of(sample.evidence.frozen),
        "parent": "sha256:" + "0" * 64,
    }
    assert statement["predicate"]["audit_digest"] == digest_file(out / "audit.json")


def test_sha256sum_accepts_the_digest_of_the_manifest(tmp_path: Path) -> None:
    out = tmp_path / "b"
    write(out, sample_evidence.agreeing())
    subprocess.run(["sha256sum", "--check", "--quiet", "manifest.sha256"], cwd=out, check=True)
    assert bundle_digest(out) == digest_bytes((out / "manifest.json").read_bytes())
    assert is_bundle(out) and not is_bundle(tmp_path)


def test_the_same_evidence_gives_the_same_bytes_whatever_the_order_of_its_tables(tmp_path: Path) -> None:
    sample = sample_evidence.agreeing()
    write(tmp_path / "first", sample)
    first = sample.evidence.cells[0]
    turned = sample_evidence.replaced(first, dims=dict(reversed(first.dims.items())))
    sample.evidence.cells[0] = turned
    write(tmp_path / "second", sample)
    assert bundle_digest(tmp_path / "first") == bundle_digest(tmp_path / "second")


@pytest.mark.parametrize("kind", ["folder", "file", "dangling link", "finished bundle"])
def test_what_is_there_is_never_written_over(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "b"
    sample = sample_evidence.agreeing()
    make = {"folder": out.mkdir, "file": out.touch, "dangling link": lambda: out.symlink_to("nowhere")}
    make.get(kind, lambda: write(out, sample))()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BundleError, match="written once"):
        write(out, sample)
    assert sorted(tmp_path.rglob("*")) == before


def test_nothing_is_left_when_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> None:
        if path.name == "decision.json":
            raise OSError(28, "No space left on device")
        path.write_bytes(data)

    monkeypatch.setattr(writing, "_write_flushed", full)
    with pytest.raises(BundleError, match="No space left"):
        write(tmp_path / "b", sample_evidence.agreeing())
    assert list(tmp_path.iterdir()) == []


def test_the_folder_appears_only_when_every_file_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, seen = tmp_path / "b", []
    rename = Path.rename

    def watched(self: Path, target: Path) -> Path:
        seen.append((out.exists(), verify_integrity(self)))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", watched)
    write(out, sample_evidence.agreeing())
    assert seen == [(False, [])]


def test_others_may_read_it_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write(tmp_path / "deep" / "b", sample_evidence.agreeing())
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "deep" / "b").stat().st_mode) == 0o755


def test_a_source_that_was_not_judged_is_refused(tmp_path: Path) -> None:
    sample = sample_evidence.agreeing()
    for wrong in ({"doubling/kernel.py": b"edited since"}, {}, {**sample.sources, "more.py": b""}):
        with pytest.raises(BundleError, match="not the one that was judged"):
            write(tmp_path / "b", sample, sources=wrong)
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a//b", "", ".", "a\\b", "a/../../b", "a\nb"])
def test_a_name_that_leads_out_of_the_bundle_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BundleError, match="leads out"):
        write(tmp_path / "b", sample_evidence.agreeing(), figures={name: b""})


def test_the_manifest_is_read_back_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "b"
    write(out, sample_evidence.failing())
    assert encode(read_manifest(out)) == (out / "manifest.json").read_bytes()
    assert read_manifest(out).predicate.decision == "revise"
