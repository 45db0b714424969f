"""Reads the records of a bundle, strictly. Missing, ambiguous and corrupt evidence are told apart, and named."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import TypeVar

import msgspec

from kernel_audit.errors import BundleError
from kernel_audit.evidence import layout
from kernel_audit.evidence.frozen import Evidence, FrozenAudit
from kernel_audit.evidence.receipts import read_receipts
from kernel_audit.evidence.regular import read_regular
from kernel_audit.evidence.strict import check_canonical, read_record, record_of
from kernel_audit.records import (
    CaptureRecord,
    Cell,
    CompiledRecord,
    Control,
    Decision,
    Environment,
    KernelInspection,
    ProfileRecord,
    RefusalCheck,
    WorkloadRecord,
    encode,
)

R = TypeVar("R")


def read_bundle(folder: Path) -> tuple[Evidence, Decision]:
    """All records of a bundle. Digests are `verify_integrity`'s part, contradictions `consistency`'s.

    Raises BundleError naming file, line and field. Its first words tell the case: "missing evidence" (no such file),
    "corrupt evidence" (not canonical JSON of the record), "ambiguous evidence" (a key, or a record, that comes
    twice), or "a record of another version".
    """
    frozen = read_record(folder, layout.AUDIT, FrozenAudit)
    evidence = Evidence(
        frozen=frozen,
        environment=read_record(folder, layout.ENVIRONMENT, Environment),
        programs=_array(folder, layout.PROGRAMS, CaptureRecord, lambda each: (each.side, each.key)),
        kernels=_array(folder, layout.KERNELS, KernelInspection, lambda each: (each.program, each.path)),
        compiled=_each_line(folder, layout.COMPILED, CompiledRecord, _compiled_key),
        cells=_each_line(folder, layout.CELLS, Cell, lambda each: each.id),
        controls=_each_line(folder, layout.CONTROLS, Control, _control_key),
        refusals=_each_line(folder, layout.REFUSALS, RefusalCheck, lambda each: each.name),
        profile=read_record(folder, layout.PROFILE, ProfileRecord) if _has_profile(folder) else None,
        workload=read_record(folder, layout.WORKLOAD, WorkloadRecord) if frozen.audit.workload is not None else None,
        receipts=read_receipts(folder / layout.RECEIPTS) if (folder / layout.RECEIPTS).is_dir() else [],
    )
    return evidence, read_record(folder, layout.DECISION, Decision)


def _has_profile(folder: Path) -> bool:
    """Whether the step was profiled: anything in the folder's place counts, so that half a profile is missing evidence."""
    return os.path.lexists(folder / layout.PROFILES)


def _compiled_key(record: CompiledRecord) -> Hashable:
    choices = encode([record.dims, record.configuration, record.mode])
    return record.target, record.topology, record.part, record.side, record.dtype, choices


def _control_key(control: Control) -> Hashable:
    return control.name, control.fixture, control.dtype, encode(control.mode)


def _array(folder: Path, name: str, kind: type[R], key: Callable[[R], Hashable]) -> list[R]:
    data = read_regular(folder, name)
    try:
        items = msgspec.json.decode(data, type=list[msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BundleError(
            f"corrupt evidence: not an array of {kind.__name__} records", stage="read", where=name, got=str(error)
        ) from None
    records = [record_of(bytes(item), kind, f"{name}, item {index}") for index, item in enumerate(items)]
    check_canonical(data, records, name)
    _check_distinct([(f"{name}, item {index}", key(each)) for index, each in enumerate(records)])
    return records


def _each_line(folder: Path, name: str, kind: type[R], key: Callable[[R], Hashable]) -> list[R]:
    data = read_regular(folder, name)
    if data and not data.endswith(b"\n"):
        line = data.count(b"\n") + 1
        raise BundleError(
            "corrupt evidence: the last line has no end",
            stage="read",
            where=f"{name}, line {line}",
            expected="a record and a line feed",
            got="a record that may be cut off",
        )
    lines = data.split(b"\n")[:-1]
    records = [record_of(line, kind, f"{name}, line {number}") for number, line in enumerate(lines, start=1)]
    _check_distinct([(f"{name}, line {number}", key(each)) for number, each in enumerate(records, start=1)])
    return records


def _check_distinct(keys: list[tuple[str, Hashable]]) -> None:
    first: dict[Hashable, str] = {}
    for where, key in keys:
        if key in first:
            raise BundleError(
                "ambiguous evidence: two records of one name",
                stage="read",
                where=where,
                expected="each once",
                got=f"{_shown(key)} again, first at {first[key]}",
            )
        first[key] = where


def _shown(key: Hashable) -> str:
    parts = key if isinstance(key, tuple) else (key,)
    return " / ".join(part.decode() if isinstance(part, bytes) else str(part) for part in parts)
