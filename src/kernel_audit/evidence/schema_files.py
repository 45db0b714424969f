"""The published JSON Schema of every record, generated from the records themselves.

`write_schemas()` writes them again beside this module (scripts/schemas); a test holds them to be current.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.evidence.frozen import FrozenAudit
from kernel_audit.evidence.manifest import PREDICATE_TYPE, STATEMENT_TYPE, Manifest
from kernel_audit.records import (
    CaptureRecord,
    Cell,
    CompiledRecord,
    Control,
    Decision,
    Environment,
    KernelInspection,
    ProfileRecord,
    Receipt,
    RefusalCheck,
    Session,
    TimingVerdict,
    WorkloadRecord,
)

SCHEMA_FOLDER = Path(__file__).parent / "schemas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

# The record of each file of a bundle: of the whole file, of each line, or of each item of its array
# (programs.json, kernels.json). A session and its verdict are parts of a receipt.
RECORDS: dict[str, type] = {
    "audit": FrozenAudit,
    "cell": Cell,
    "compiled": CompiledRecord,
    "control": Control,
    "decision": Decision,
    "environment": Environment,
    "kernel": KernelInspection,
    "manifest": Manifest,
    "profile": ProfileRecord,
    "program": CaptureRecord,
    "receipt": Receipt,
    "refusal": RefusalCheck,
    "workload": WorkloadRecord,
    "session": Session,
    "timing-verdict": TimingVerdict,
}
_CONSTANTS = {"_type": STATEMENT_TYPE, "predicateType": PREDICATE_TYPE}


def schema_files() -> dict[str, bytes]:
    """The content of every file of `schemas/`, by name."""
    return {f"{name}.json": _schema(kind) for name, kind in RECORDS.items()}


def write_schemas(folder: Path = SCHEMA_FOLDER) -> None:
    """Writes the files; those that no record has any more are removed."""
    folder.mkdir(exist_ok=True)
    files = schema_files()
    for stale in folder.glob("*.json"):
        if stale.name not in files:
            stale.unlink()
    for name, data in files.items():
        (folder / name).write_bytes(data)


def _schema(kind: type) -> bytes:
    schema = {"$schema": DIALECT, **msgspec.json.schema(kind)}
    _finish(schema)
    return (json.dumps(schema, indent=1, sort_keys=True) + "\n").encode()


def _finish(node: Any) -> None:
    """Pins versions and types to their one value, and requires every field: a written record has them all."""
    if isinstance(node, list):
        for each in node:
            _finish(each)
        return
    if not isinstance(node, dict):
        return
    properties = node.get("properties")
    if isinstance(properties, dict) and node.get("type") == "object":
        node["required"] = sorted(properties)
        for name, each in properties.items():
            version = each.get("default")
            if name in _CONSTANTS:
                properties[name] = {"const": _CONSTANTS[name]}
            elif name == "schema" and isinstance(version, str):
                properties[name] = {"const": version}
    for each in node.values():
        _finish(each)
