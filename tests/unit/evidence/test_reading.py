"""Reading is strict, and what is wrong is named: file, line and field; missing, ambiguous and corrupt apart."""

from collections.abc import Callable
from pathlib import Path

import pytest
import sample_evidence

from kernel_audit.errors import BundleError
from kernel_audit.evidence import read_bundle

RECORD_FILES = [
    "audit.json",
    "environment.json",
    "cells.jsonl",
    "controls.jsonl",
    "kernels.json",
    "compiled.jsonl",
    "programs.json",
    "decision.json",
]


def edit(bundle: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    path = bundle / name
    path.write_bytes(change(path.read_bytes()))


def refusal(bundle: Path) -> str:
    with pytest.raises(BundleError) as raised:
        read_bundle(bundle)
    return str(raised.value)


def test_what_was_written_is_read(bundle: Path) -> None:
    sample = sample_evidence.failing()
    assert read_bundle(bundle) == (sample.evidence, sample.decision)


@pytest.mark.parametrize("name", RECORD_FILES)
def test_a_file_that_is_not_there_is_missing(bundle: Path, name: str) -> None:
    (bundle / name).unlink()
    text = refusal(bundle)
    assert "missing evidence" in text and name in text


def test_a_folder_that_is_not_there_is_missing(tmp_path: Path) -> None:
    assert "missing evidence" in refusal(tmp_path / "none")


@pytest.mark.parametrize("name", RECORD_FILES)
@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]x", b"null", b'"\xff"', b"[" * 100_000, b'{"a":' * 50_000, b"9" * 9]
)
def test_nonsense_is_corrupt_and_never_another_error(bundle: Path, name: str, content: bytes) -> None:
    (bundle / name).write_bytes(content + (b"\n" if name.endswith("l") and content else b""))
    if name.endswith("l") and not content:
        read_bundle(bundle)  # no records are no nonsense: `consistency` misses them
        return
    text = refusal(bundle)
    assert "corrupt evidence" in text and name in text


def test_a_field_of_the_wrong_type_is_named_with_its_line(bundle: Path) -> None:
    edit(bundle, "cells.jsonl", lambda data: data.replace(b'"differing":9', b'"differing":"9"'))
    text = refusal(bundle)
    assert "corrupt evidence" in text and "cells.jsonl, line 3" in text and "$.differing" in text


def test_a_field_that_is_left_out_is_named(bundle: Path) -> None:
    edit(bundle, "controls.jsonl", lambda data: data.replace(b'"fixture":"lesson-1x1",', b"", 1))
    text = refusal(bundle)
    assert "controls.jsonl, line 1" in text and "fixture" in text


def test_an_unknown_field_is_named(bundle: Path) -> None:
    edit(bundle, "decision.json", lambda data: data.replace(b'"audit":', b'"also":1,"audit":'))
    text = refusal(bundle)
    assert "corrupt evidence" in text and "decision.json" in text and "also" in text


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("audit.json", b"kernel-audit/frozen-audit/1"),
        ("cells.jsonl", b"kernel-audit/cell/1"),
        ("programs.json", b"kernel-audit/program/1"),
        ("kernels.json", b"kernel-audit/kernel-inspection/1"),
        ("compiled.jsonl", b"kernel-audit/compiled/1"),
        ("decision.json", b"kernel-audit/decision/1"),
    ],
)
def test_another_version_is_refused_by_name(bundle: Path, name: str, ours: bytes) -> None:
    edit(bundle, name, lambda data: data.replace(ours, ours[:-1] + b"7", 1))
    text = refusal(bundle)
    assert "another version" in text and ours.decode()[:-1] + "7" in text and ours.decode() in text


def test_a_key_that_comes_twice_is_ambiguous(bundle: Path) -> None:
    edit(bundle, "decision.json", lambda data: data.replace(b'"level":"int', b'"level":"traced","level":"int'))
    text = refusal(bundle)
    assert "ambiguous evidence" in text and "decision.json" in text and "'level'" in text


@pytest.mark.parametrize("name", ["cells.jsonl", "controls.jsonl", "refusals.jsonl"])
def test_a_record_that_comes_twice_is_ambiguous(bundle: Path, name: str) -> None:
    edit(bundle, name, lambda data: data + data.splitlines(keepends=True)[0])
    text = refusal(bundle)
    assert "ambiguous evidence" in text and f"{name}, line" in text and f"first at {name}, line 1" in text


@pytest.mark.parametrize("name", ["programs.json", "kernels.json"])
def test_a_program_that_comes_twice_is_ambiguous(bundle: Path, name: str) -> None:
    edit(bundle, name, lambda data: data[:-1] + b"," + data[1:])
    assert "ambiguous evidence" in refusal(bundle)


@pytest.mark.parametrize("change", [lambda data: data.replace(b":", b": ", 1), lambda data: data + b" "])
def test_another_spelling_of_the_same_record_is_corrupt(bundle: Path, change: Callable[[bytes], bytes]) -> None:
    edit(bundle, "environment.json", change)
    assert "not canonical" in refusal(bundle)


def test_a_last_line_that_is_cut_off_is_corrupt(bundle: Path) -> None:
    edit(bundle, "cells.jsonl", lambda data: data[:-1])
    text = refusal(bundle)
    assert "corrupt evidence" in text and "cells.jsonl, line 6" in text


def test_a_link_is_not_followed(bundle: Path) -> None:
    (bundle / "decision.json").rename(bundle.parent / "elsewhere.json")
    (bundle / "decision.json").symlink_to(bundle.parent / "elsewhere.json")
    assert "symbolic link" in refusal(bundle)
