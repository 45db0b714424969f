"""Any changed byte of any file of a bundle is found and its file named; any records come back as they were written."""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sample_evidence
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_evidence import replaced

from kernel_audit.evidence import read_bundle, verify_integrity, write_bundle

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
NUMBERS = st.none() | st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sample = sample_evidence.failing()
    out = tmp_path_factory.mktemp("bytes") / "bundle"
    figures = {"gap.png": bytes(range(256)), "gap.json": b"{}"}
    write_bundle(sample.evidence, sample.decision, sample.sources, figures, b"<!doctype html>", out)
    return out


@pytest.fixture(scope="module", autouse=True)
def unflushed() -> Iterator[None]:
    """Spares the disk: what is shown here does not depend on surviving a power failure."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


def files(bundle: Path) -> list[str]:
    return sorted(path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file())


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_changed_byte_is_found_and_its_file_named(bundle: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(files(bundle)))
    path = bundle / name
    right = path.read_bytes()
    place = data.draw(st.integers(0, len(right) - 1))
    wrong = bytearray(right)
    wrong[place] ^= data.draw(st.integers(1, 255))
    path.write_bytes(wrong)
    try:
        assert name in {each.file for each in verify_integrity(bundle)}
    finally:
        path.write_bytes(right)
    assert verify_integrity(bundle) == []


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_other_content_of_a_manifest_raises_nothing(bundle: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["manifest.json", "manifest.sha256"]))
    path = bundle / name
    right = path.read_bytes()
    wrong = data.draw(st.binary(max_size=200)) + right[data.draw(st.integers(0, len(right))) :]
    path.write_bytes(wrong)
    try:
        assert (wrong == right) or name in {each.file for each in verify_integrity(bundle)}
    finally:
        path.write_bytes(right)


@settings(max_examples=40, deadline=None)
@given(
    note=TEXT,
    error=NUMBERS,
    mode=st.dictionaries(TEXT, st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXT, max_size=3),
    position=st.lists(st.integers(0, 2**40), max_size=3),
)
def test_records_come_back_as_they_were_written(
    note: str, error: float | None, mode: dict[str, object], position: list[int]
) -> None:
    sample = sample_evidence.failing()
    cells = list(sample.evidence.cells)
    first = [replaced(cells[2].differing_first[0], position=position, actual=note)]
    cells[2] = replaced(cells[2], note=note, kernel_error_max=error, mode=mode, differing_first=first)
    evidence = replace(sample.evidence, cells=cells)
    decision = replaced(sample.decision, summary=note)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "bundle"
        write_bundle(evidence, decision, sample.sources, {}, note.encode(), out)
        assert read_bundle(out) == (evidence, decision)
        assert verify_integrity(out) == []
