"""One record from bytes or from a file, strictly: its version, and its canonical spelling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from kernel_audit.errors import BundleError
from kernel_audit.evidence.regular import read_regular
from kernel_audit.records import decode, encode

R = TypeVar("R")


def read_record(folder: Path, name: str, kind: type[R]) -> R:
    """The record in a file of `folder`. Raises BundleError as `record_of` does, and where there is no such file."""
    return record_of(read_regular(folder, name), kind, name)


def record_of(data: bytes, kind: type[R], where: str) -> R:
    """The record in these bytes. Raises BundleError: corrupt, ambiguous, of another version, not canonical."""
    record = _decoded(data, kind, where)
    _check_version(record, where)
    check_canonical(data, record, where)
    return record


def _decoded(data: bytes, kind: Any, where: str) -> Any:
    try:
        return decode(data, kind, where=where)
    except BundleError as error:
        if error.expected is not None:  # a record of another version: says so itself
            raise
        raise BundleError(f"corrupt evidence: {error.what}", stage="read", where=where, got=error.got) from None
    except RecursionError:
        raise BundleError("corrupt evidence: nested too deeply", stage="read", where=where) from None


def _check_version(record: Any, where: str) -> None:
    ours = next((each for each in record.__struct_defaults__ if str(each).startswith("kernel-audit/")), None)
    found = getattr(record, "schema", None)
    if found != ours:
        raise BundleError("a record of another version", stage="read", where=where, expected=ours, got=found)


def check_canonical(data: bytes, value: Any, where: str) -> None:
    """Raises BundleError for other bytes of the same value: a digest of the record must be the digest of the file."""
    if encode(value) == data:
        return
    if (twice := _repeated_key(data)) is not None:
        raise BundleError(
            "ambiguous evidence: a key that comes twice", stage="read", where=where, expected="each once", got=twice
        )
    raise BundleError(
        "corrupt evidence: not canonical JSON",
        stage="read",
        where=where,
        expected="sorted keys, no spaces, shortest numbers, every field present",
        got="another spelling of the record",
    )


def _repeated_key(data: bytes) -> str | None:
    found: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in pairs]
        found.extend(name for name in names if names.count(name) > 1)
        return dict(pairs)

    json.loads(data, object_pairs_hook=collect)
    return repr(found[0]) if found else None
