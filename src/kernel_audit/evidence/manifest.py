"""The manifest: an in-toto Statement (v1) that names every other file of a bundle by its SHA-256."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kernel_audit.errors import BundleError
from kernel_audit.evidence.frozen import Evidence
from kernel_audit.evidence.layout import MANIFEST, MANIFEST_DIGEST
from kernel_audit.evidence.regular import read_regular
from kernel_audit.records import Decision, Record, decode, digest_bytes, digest_of, encode

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:kernel-audit:bundle:1"


class Subject(Record, kw_only=True):
    """A file of the bundle and its digest: {"sha256": 64 hexadecimal digits}."""

    name: str
    digest: dict[str, str]


class Predicate(Record, kw_only=True):
    """What the bundle says. `parent` is the digest of the bundle that this one adds evidence to."""

    tool_version: str
    decision: str | None
    audit: str
    audit_digest: str
    parent: str | None = None


class Manifest(Record, kw_only=True):
    """An in-toto Statement. `subject` is sorted by name."""

    statement_type: str = msgspec.field(name="_type", default=STATEMENT_TYPE)
    subject: list[Subject]
    predicate_type: str = msgspec.field(name="predicateType", default=PREDICATE_TYPE)
    predicate: Predicate

    def digests(self) -> dict[str, str]:
        """Each file's "sha256:<hex>" by name; the first one where a name comes twice."""
        found: dict[str, str] = {}
        for each in self.subject:
            found.setdefault(each.name, "sha256:" + each.digest.get("sha256", ""))
        return found


def manifest_of(
    files: Mapping[str, bytes], evidence: Evidence, decision: Decision, parent_digest: str | None
) -> Manifest:
    """The manifest of these files."""
    subjects = [
        Subject(name=name, digest={"sha256": hashlib.sha256(data).hexdigest()}) for name, data in sorted(files.items())
    ]
    predicate = Predicate(
        tool_version=evidence.environment.tool_version,
        decision=decision.decision,
        audit=evidence.frozen.audit.name,
        audit_digest=digest_of(evidence.frozen),
        parent=parent_digest,
    )
    return Manifest(subject=subjects, predicate=predicate)


def digest_line(manifest: bytes) -> bytes:
    """The content of manifest.sha256, as `sha256sum --check` reads it."""
    return f"{hashlib.sha256(manifest).hexdigest()}  {MANIFEST}\n".encode()


def decode_manifest(data: bytes) -> Manifest:
    """The manifest in these bytes, strictly.

    Raises BundleError when they are no Statement of the type and version that are written here, or not canonical.
    """
    try:
        manifest = decode(data, Manifest, where=MANIFEST)
    except RecursionError:
        raise BundleError("corrupt evidence: nested too deeply", stage="read", where=MANIFEST) from None
    for wanted, found in ((STATEMENT_TYPE, manifest.statement_type), (PREDICATE_TYPE, manifest.predicate_type)):
        if found != wanted:
            raise BundleError(
                "a manifest of another type or version", stage="read", where=MANIFEST, expected=wanted, got=found
            )
    if encode(manifest) != data:
        raise BundleError("corrupt evidence: not canonical JSON", stage="read", where=MANIFEST)
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a bundle; BundleError when it is missing or corrupt."""
    return decode_manifest(read_regular(folder, MANIFEST))


def is_bundle(folder: Path) -> bool:
    """Whether a finished bundle lies there: manifest and digest exist, whatever they say."""
    return (folder / MANIFEST).is_file() and (folder / MANIFEST_DIGEST).is_file()


def bundle_digest(folder: Path) -> str:
    """ "sha256:<hex>" of manifest.json, which stands for the whole bundle. Raises BundleError where there is none."""
    return digest_bytes(read_regular(folder, MANIFEST))
