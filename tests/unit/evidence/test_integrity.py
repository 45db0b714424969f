"""Every changed, missing or extra file is named, and nothing that a hostile bundle says makes verifying raise."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from kernel_audit.evidence import verify_integrity

FILES = [
    "audit.json",
    "cells.jsonl",
    "controls.jsonl",
    "decision.json",
    "environment.json",
    "figures/gap.json",
    "compiled.jsonl",
    "kernels.json",
    "programs.json",
    "manifest.json",
    "manifest.sha256",
    "refusals.jsonl",
    "report.html",
    "sources/doubling/kernel.py",
]


def found(bundle: Path) -> set[tuple[str, str]]:
    return {(each.file, each.kind) for each in verify_integrity(bundle)}


def forge(bundle: Path, change: Any) -> None:
    """Rewrites the manifest and its digest, as someone would who knows the format."""
    manifest = json.loads((bundle / "manifest.json").read_bytes())
    change(manifest)
    write_manifest(bundle, json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode())


def write_manifest(bundle: Path, data: bytes) -> None:
    (bundle / "manifest.json").write_bytes(data)
    (bundle / "manifest.sha256").write_text(f"{hashlib.sha256(data).hexdigest()}  manifest.json\n")


def test_a_finished_bundle_is_whole(bundle: Path) -> None:
    assert verify_integrity(bundle) == []


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(bundle: Path, name: str) -> None:
    (bundle / name).unlink()
    assert (name, "missing") in found(bundle)


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_is_named_alone(bundle: Path, name: str) -> None:
    path = bundle / name
    path.write_bytes(path.read_bytes() + b" ")
    assert (name, "changed") in found(bundle)
    assert {file for file, _ in found(bundle)} == {name}


@pytest.mark.parametrize("name", FILES)
def test_a_link_in_place_of_a_file_is_named_though_its_bytes_are_right(bundle: Path, name: str) -> None:
    kept = bundle.parent / "kept"
    (bundle / name).rename(kept)
    (bundle / name).symlink_to(kept)
    assert (name, "not-a-file") in found(bundle)


@pytest.mark.parametrize("name", FILES)
def test_a_folder_or_a_pipe_in_place_of_a_file_is_named(bundle: Path, name: str) -> None:
    (bundle / name).unlink()
    (bundle / name).mkdir()
    assert (name, "not-a-file") in found(bundle)
    (bundle / name).rmdir()
    os.mkfifo(bundle / name)  # opening it would wait for ever
    assert (name, "not-a-file") in found(bundle)


def test_extra_files_folders_and_links_are_named(bundle: Path) -> None:
    (bundle / "note.txt").touch()
    (bundle / "sources" / "empty").mkdir()
    (bundle / "figures" / "out").symlink_to("/")
    (bundle / ".hidden").touch()
    (bundle / os.fsdecode(b"caf\xe9")).touch()
    assert found(bundle) == {
        ("note.txt", "extra"),
        ("sources/empty", "extra"),
        ("figures/out", "extra"),
        (".hidden", "extra"),
        ("caf\\udce9", "extra"),
    }


def test_a_folder_that_is_not_there_is_missing(tmp_path: Path) -> None:
    assert found(tmp_path / "none") == {(".", "missing")}


def test_a_file_as_a_bundle_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert {file for file, _ in found(tmp_path / "file")} == {"."}


def test_an_unreadable_file_is_named(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.open

    def refusing(path: Any, *args: Any, **kwargs: Any) -> int:
        if str(path).endswith("cells.jsonl"):
            raise PermissionError(13, "Permission denied")
        return really(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", refusing)
    assert found(bundle) == {("cells.jsonl", "unreadable")}


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../../x", "a/../b", "manifest.json", "", "a\\b", "x" * 2000, "a\u0000"]
)
def test_a_manifest_that_points_elsewhere_is_at_fault(bundle: Path, name: str) -> None:
    def point(manifest: dict[str, Any]) -> None:
        manifest["subject"].append({"name": name, "digest": {"sha256": "0" * 64}})
        manifest["subject"].sort(key=lambda each: each["name"])

    forge(bundle, point)
    assert ("manifest.json", "corrupt") in found(bundle)


def test_a_file_that_is_named_twice_is_ambiguous(bundle: Path) -> None:
    forge(bundle, lambda manifest: manifest["subject"].insert(0, manifest["subject"][0]))
    assert ("manifest.json", "ambiguous") in found(bundle)


def test_a_manifest_that_forgets_a_file_is_at_fault(bundle: Path) -> None:
    forge(bundle, lambda manifest: manifest["subject"].pop(1))
    (bundle / "cells.jsonl").unlink()
    assert found(bundle) == {("manifest.json", "missing")}


@pytest.mark.parametrize("digest", [{"sha256": "0" * 63}, {"sha256": "A" * 64}, {"md5": "0" * 32}, {}])
def test_a_digest_that_is_none_is_at_fault(bundle: Path, digest: dict[str, str]) -> None:
    forge(bundle, lambda manifest: manifest["subject"][0].update(digest=digest))
    assert ("manifest.json", "corrupt") in found(bundle)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[" * 200_000,
        b'{"subject":' * 100_000,
        b'{"subject":[],"predicate":1' + b"0" * 10_000 + b"}",
        b'{"_type":1e999}',
        b'{"_type":"\xff\xfe"}',
        b"\x00" * 100,
        b'{"subject":[{"name":"a","digest":{"sha256":' + b"[" * 50_000,
    ],
)
def test_hostile_json_is_named_and_raises_nothing(bundle: Path, data: bytes) -> None:
    write_manifest(bundle, data)
    assert ("manifest.json", "corrupt") in found(bundle)


def test_another_digest_of_the_manifest_names_the_right_file(bundle: Path) -> None:
    (bundle / "manifest.sha256").write_text("no digest at all\n")
    assert found(bundle) == {("manifest.sha256", "changed")}
    (bundle / "manifest.sha256").write_text("0" * 64 + "  manifest.json\n")
    assert found(bundle) == {("manifest.json", "changed")}
