"""Canonical JSON: sorted keys, no spaces, shortest round-trip floats. One record, one sequence of bytes, one digest."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from kernel_audit.errors import BundleError


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of every record: immutable and strict about what it reads. Subclasses say `kw_only=True` (it is not inherited)."""


R = TypeVar("R")


def encode(value: Any) -> bytes:
    """Canonical JSON bytes. Non-finite floats have no place in JSON: records count them or leave the field empty."""
    return msgspec.json.encode(value, order="sorted")


def decode(data: bytes, kind: type[R], *, where: str) -> R:
    """`data` as a record of type `kind`.

    Raises BundleError naming the field at fault, or the version when the record's `schema` is not ours.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        ours = kind.__struct_fields__ and getattr(kind, "__struct_defaults__", ())
        wanted = next((each for each in ours or () if isinstance(each, str) and each.startswith("kernel-audit/")), None)
        found = _schema_of(data)
        if wanted and found and found != wanted:
            raise BundleError(
                "a record of another version", stage="read", where=where, expected=wanted, got=found
            ) from None
        raise BundleError(f"not a {kind.__name__} record", stage="read", where=where, got=str(error)) from None


def _schema_of(data: bytes) -> str | None:
    try:
        raw = msgspec.json.decode(data)
    except msgspec.DecodeError:
        return None
    return raw.get("schema") if isinstance(raw, dict) else None


def digest_bytes(data: bytes) -> str:
    """ "sha256:<hex>" of bytes."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_of(value: Any) -> str:
    """Digest of a value's canonical JSON."""
    return digest_bytes(encode(value))


def digest_file(path: Path) -> str:
    """Digest of a file's bytes, read in chunks."""
    with path.open("rb") as stream:
        return "sha256:" + hashlib.file_digest(stream, "sha256").hexdigest()
