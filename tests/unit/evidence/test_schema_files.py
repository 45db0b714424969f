"""The published schemas are those of the records, and every record that is written keeps to its schema."""

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kernel_audit.evidence import schema_files
from kernel_audit.evidence.schema_files import RECORDS, SCHEMA_FOLDER, write_schemas

# file of a bundle -> its schema
WHOLE = {
    "audit.json": "audit",
    "environment.json": "environment",
    "decision.json": "decision",
    "manifest.json": "manifest",
}
ITEMS = {
    "cells.jsonl": "cell",
    "compiled.jsonl": "compiled",
    "controls.jsonl": "control",
    "kernels.json": "kernel",
    "programs.json": "program",
    "refusals.jsonl": "refusal",
}


def schema(name: str) -> dict[str, Any]:
    return json.loads((SCHEMA_FOLDER / f"{name}.json").read_bytes())


def records(bundle: Path, name: str) -> list[Any]:
    data = (bundle / name).read_bytes()
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in data.splitlines()]
    return json.loads(data) if name in ITEMS else [json.loads(data)]


def test_published_schemas_are_current() -> None:
    published = {path.name: path.read_bytes() for path in SCHEMA_FOLDER.glob("*.json")}
    assert published == schema_files()  # `scripts/schemas` writes them again


def test_writing_again_removes_what_no_record_has(tmp_path: Path) -> None:
    (tmp_path / "old.json").touch()
    write_schemas(tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == set(RECORDS)


@pytest.mark.parametrize(("file", "name"), [*WHOLE.items(), *ITEMS.items()])
def test_written_records_keep_to_their_schema(bundle: Path, file: str, name: str) -> None:
    validator = jsonschema.Draft202012Validator(schema(name))
    validator.check_schema(schema(name))
    found = records(bundle, file)
    assert found
    for each in found:
        validator.validate(each)


@pytest.mark.parametrize(("file", "name"), [*WHOLE.items(), *ITEMS.items()])
def test_schemas_refuse_what_is_no_such_record(bundle: Path, file: str, name: str) -> None:
    validator = jsonschema.Draft202012Validator(schema(name))
    record = records(bundle, file)[0]
    version = "_type" if name == "manifest" else "schema"
    for key in record:
        without = copy.deepcopy(record)
        del without[key]
        assert not validator.is_valid(without), f"{key} may be left out"
    assert not validator.is_valid({**record, "unknown": 1})
    assert not validator.is_valid({**record, version: "kernel-audit/other/9"})
