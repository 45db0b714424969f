"""workload.json: written where there is a workload, read again the same, and contradictions in it found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
import workload_sample
from sample_evidence import agreeing

from kernel_audit.decision import decide
from kernel_audit.errors import BundleError
from kernel_audit.evidence import consistency, read_bundle, write_bundle
from kernel_audit.evidence.schema_files import SCHEMA_FOLDER
from kernel_audit.records import WorkloadRecord


def _written(tmp_path: Path) -> Path:
    sample = agreeing()
    evidence = workload_sample.with_workload(sample.evidence, workload_sample.record())
    write_bundle(evidence, decide(evidence), sample.sources, {}, b"page", tmp_path / "bundle")
    return tmp_path / "bundle"


def test_it_is_read_as_it_was_written_and_keeps_to_its_schema(tmp_path: Path):
    bundle = _written(tmp_path)
    evidence, _ = read_bundle(bundle)
    assert evidence.workload == workload_sample.record()
    schema = json.loads((SCHEMA_FOLDER / "workload.json").read_bytes())
    jsonschema.validate(json.loads((bundle / "workload.json").read_bytes()), schema)


def test_a_bundle_without_a_workload_has_no_such_file(tmp_path: Path):
    sample = agreeing()
    write_bundle(sample.evidence, sample.decision, sample.sources, {}, b"page", tmp_path / "bundle")
    assert not (tmp_path / "bundle" / "workload.json").exists()
    assert read_bundle(tmp_path / "bundle")[0].workload is None


def test_a_stated_workload_that_is_not_there_is_missing_evidence(tmp_path: Path):
    bundle = _written(tmp_path)
    (bundle / "workload.json").unlink()
    with pytest.raises(BundleError, match="missing evidence"):
        read_bundle(bundle)


def _faults(record: WorkloadRecord | None) -> list[str]:
    evidence = workload_sample.with_workload(agreeing().evidence, record)
    return [each.text for each in consistency(evidence, decide(evidence)) if each.file == "workload.json"]


def test_a_sound_record_has_no_faults():
    assert _faults(workload_sample.record()) == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"seed": 99}, "its seed is 99"),
        ({"within": 0.5}, "its bound is 0.5"),
        ({"updates": 1}, "its updates is 1"),
        ({"step": "other:step"}, "its step is 'other:step'"),
        ({"audit": "other"}, "its audit is 'other'"),
        ({"partitions": []}, "unknown partition"),
        ({"partitions": workload_sample.PARTITIONS[:3]}, "partitions are not those"),
        ({"runs": workload_sample.whole()[1:]}, "the planned run 'step/fused/float32/data=2/3+5' has no record"),
        (
            {"runs": [each for each in workload_sample.whole() if each.side == "fused"]},
            "the planned run 'step/candidate",
        ),
        ({"runs": [*workload_sample.whole(), workload_sample.run(side="twice")]}, "was not planned"),
        ({"runs": [workload_sample.run(), workload_sample.run()]}, "two records"),
        ({"runs": [workload_sample.run(outcome="fine")]}, "unknown outcome"),
        ({"runs": [workload_sample.run(codes=["sum-for-mean"])]}, "something speaks against it"),
        ({"runs": [workload_sample.run(copies_equal=False)]}, "something speaks against it"),
        ({"runs": [workload_sample.run(errors=[])]}, "after 0 of 5 updates"),
    ],
)
def test_contradictions(changes: dict[str, Any], text: str):
    assert any(text in each for each in _faults(workload_sample.record(**changes))), _faults(
        workload_sample.record(**changes)
    )


def test_an_error_above_the_bound_is_not_right():
    errors = workload_sample.run().errors[:4]
    high = [*errors, msgspec.structs.replace(errors[0], state=2e-6)]
    assert any("above 1e-06" in each for each in _faults(workload_sample.record(workload_sample.run(errors=high))))


def test_a_workload_without_a_record_and_the_reverse():
    assert any("no record of it" in each for each in _faults(None))
    evidence = replace(agreeing().evidence, workload=workload_sample.record())
    assert any("does not state" in each.text for each in consistency(evidence, decide(evidence)))
