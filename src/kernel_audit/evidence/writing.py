"""Writes a bundle: staged beside its place, flushed to the disk, then renamed. It is there complete, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kernel_audit.errors import BundleError
from kernel_audit.evidence import layout
from kernel_audit.evidence.frozen import Evidence
from kernel_audit.evidence.manifest import digest_line, manifest_of
from kernel_audit.records import Decision, digest_bytes, encode, receipt_name


def write_bundle(
    evidence: Evidence,
    decision: Decision,
    sources: Mapping[str, bytes],
    figures: Mapping[str, bytes],
    page: bytes,
    out: Path,
    parent_digest: str | None = None,
    *,
    traces: Mapping[str, bytes] | None = None,
) -> None:
    """Writes the bundle `out`, a folder that must not exist; its parent folder is made.

    `sources` are the judged sources by the labels of `evidence.frozen.sources`, `figures` files by name, `page` the
    report, `parent_digest` that of the bundle to which this one adds evidence, `traces` the files that `evidence.profile`
    names, by their names below `profile/`. Raises BundleError when `out` exists,
    when a source is not the one that the frozen audit names, when a name leads out of the bundle, or when the disk
    refuses.
    """
    _refuse_what_exists(out)
    _check_sources(evidence, sources)
    _check_traces(evidence, traces or {})
    files = _contents(evidence, decision, sources, figures, page)
    _add(files, layout.PROFILES, traces or {})
    manifest = encode(manifest_of(files, evidence, decision, parent_digest))
    files[layout.MANIFEST] = manifest
    files[layout.MANIFEST_DIGEST] = digest_line(manifest)
    try:
        _write_atomically(files, out)
    except OSError as error:
        raise BundleError(
            "the bundle cannot be written", stage="write", where=str(out), got=error.strerror or str(error)
        ) from error


def _refuse_what_exists(out: Path) -> None:
    if os.path.lexists(out):
        raise BundleError(
            "a bundle is written once, and something is already there",
            stage="write",
            where=str(out),
            expected="a folder that does not exist",
            got="a folder" if out.is_dir() else "a file",
            next_command="kernel-audit run AUDIT --out ANOTHER_FOLDER",
        )


def _check_sources(evidence: Evidence, sources: Mapping[str, bytes]) -> None:
    found = {label: digest_bytes(data) for label, data in sources.items()}
    frozen = evidence.frozen.sources
    for label in sorted(found.keys() | frozen.keys()):
        if found.get(label) != frozen.get(label):
            raise BundleError(
                "a source that is not the one that was judged",
                stage="write",
                where=f"{layout.SOURCES}/{label}",
                expected=frozen.get(label, "no such source in the frozen audit"),
                got=found.get(label, "no such source"),
            )


def _check_traces(evidence: Evidence, traces: Mapping[str, bytes]) -> None:
    named = {each.name: each.digest for each in evidence.profile.traced.files} if evidence.profile else {}
    found = {name: digest_bytes(data) for name, data in traces.items()}
    for name in sorted(named.keys() | found.keys()):
        if named.get(name) != found.get(name):
            raise BundleError(
                "a trace that is not the one of the profile",
                stage="write",
                where=f"{layout.PROFILES}/{name}",
                expected=named.get(name, "no such file in the profile"),
                got=found.get(name, "no such file"),
            )


def _contents(
    evidence: Evidence, decision: Decision, sources: Mapping[str, bytes], figures: Mapping[str, bytes], page: bytes
) -> dict[str, bytes]:
    """Every file of the bundle except the manifest and its digest."""
    files = {
        layout.AUDIT: encode(evidence.frozen),
        layout.ENVIRONMENT: encode(evidence.environment),
        layout.CELLS: _lines(evidence.cells),
        layout.CONTROLS: _lines(evidence.controls),
        layout.REFUSALS: _lines(evidence.refusals),
        layout.PROGRAMS: encode(evidence.programs),
        layout.KERNELS: encode(evidence.kernels),
        layout.COMPILED: _lines(evidence.compiled),
        layout.DECISION: encode(decision),
        layout.PAGE: page,
    }
    if evidence.profile is not None:
        files[layout.PROFILE] = encode(evidence.profile)
    if evidence.workload is not None:
        files[layout.WORKLOAD] = encode(evidence.workload)
    receipts = {f"{receipt_name(each)}.json": encode(each) for each in evidence.receipts}
    for folder, found in ((layout.RECEIPTS, receipts), (layout.SOURCES, sources), (layout.FIGURES, figures)):
        _add(files, folder, found)
    return files


def _add(files: dict[str, bytes], folder: str, found: Mapping[str, bytes]) -> None:
    for name, data in found.items():
        if not layout.is_plain_name(name):
            raise BundleError(
                "a name that leads out of the bundle",
                stage="write",
                where=f"{folder}: {name!r}",
                expected="a relative path such as 'kernels/axpy.py'",
                got=repr(name),
            )
        files[f"{folder}/{name}"] = data


def _lines(records: Iterable[Any]) -> bytes:
    """One record a line."""
    return b"".join(encode(each) + b"\n" for each in records)


def _write_atomically(files: Mapping[str, bytes], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{out.name}.partial-", dir=out.parent))
    try:
        for name, data in files.items():
            path = staging / name
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_flushed(path, data)
        for folder, _, _ in os.walk(staging):
            _flush_folder(Path(folder))
        staging.chmod(0o777 & ~_umask())  # mkdtemp makes folders that only their owner may read
        staging.rename(out)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise
    _flush_folder(out.parent)


def _write_flushed(path: Path, data: bytes) -> None:
    with path.open("xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _flush_folder(folder: Path) -> None:
    """Makes names in a folder durable, as fsync of the files alone does not."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    """The process's umask; the only way to read it is to set it."""
    current = os.umask(0o077)
    os.umask(current)
    return current
