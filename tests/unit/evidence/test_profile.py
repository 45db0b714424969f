"""A profile in a bundle: read back the same, its statistics computed again, its traces held to their digests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sample_evidence
import sample_profile

from kernel_audit.contract import Worth
from kernel_audit.decision import decide
from kernel_audit.decision.verify import verify
from kernel_audit.errors import BundleError
from kernel_audit.evidence import Evidence, consistency, private_text, read_bundle, write_bundle
from kernel_audit.evidence.profile import profile_faults
from kernel_audit.records import ProfileRecord
from kernel_audit.records.protobuf import append_field


def evidence_with(record: ProfileRecord) -> Evidence:
    base = sample_evidence.agreeing().evidence
    worth = Worth(objective="step-time", margin=0.1, step="train.py:step")
    audit = msgspec.structs.replace(base.frozen.audit, worth=worth)
    return replace(base, frozen=msgspec.structs.replace(base.frozen, audit=audit), profile=record)


def written(folder: Path, record: ProfileRecord, traces: dict[str, bytes] = sample_profile.TRACES) -> Path:
    evidence = evidence_with(record)
    write_bundle(evidence, decide(evidence), sample_evidence.SOURCES, {}, b"<html></html>", folder, traces=traces)
    return folder


def told(record: ProfileRecord) -> list[str]:
    return [each.text for each in profile_faults(evidence_with(record))]


def test_a_bundle_holds_the_profile_and_its_traces(tmp_path: Path) -> None:
    record = sample_profile.profile()
    out = written(tmp_path / "bundle", record)
    evidence, decision = read_bundle(out)
    assert evidence.profile == record and decision == decide(evidence)
    assert {name: (out / "profile" / name).read_bytes() for name in sample_profile.TRACES} == sample_profile.TRACES
    assert verify(out) == []


def test_a_bundle_without_a_profile_has_none(tmp_path: Path) -> None:
    sample = sample_evidence.agreeing()
    write_bundle(sample.evidence, sample.decision, sample.sources, {}, b"", tmp_path / "bundle")
    assert read_bundle(tmp_path / "bundle")[0].profile is None


def test_a_trace_that_is_not_the_profiles_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="a trace that is not the one of the profile"):
        written(
            tmp_path / "bundle", sample_profile.profile(), {**sample_profile.TRACES, "rank-0/step.hlo.txt": b"else"}
        )
    with pytest.raises(BundleError, match=r"rank-0/trace\.xplane\.pb"):
        written(tmp_path / "bundle", sample_profile.profile(), {"rank-0/step.hlo.txt": b"HloModule jit_step\n"})


@pytest.mark.parametrize("name", ["profile/profile.json", "profile/rank-0/trace.xplane.pb"])
def test_a_missing_part_is_told(tmp_path: Path, name: str) -> None:
    out = written(tmp_path / "bundle", sample_profile.profile())
    (out / name).unlink()
    assert any(each.file == name and each.kind == "missing" for each in verify(out))


def replaced(record: Any, **changes: Any) -> Any:
    return msgspec.structs.replace(record, **changes)


RECORD = sample_profile.profile()
FIRST = RECORD.regions[0]
FAULTS = {
    "of the unknown side": replaced(RECORD, side="else"),
    "claims the target": replaced(RECORD, target="tpu:v5e"),
    "platform 'tpu', logical": replaced(RECORD, platform="tpu"),
    "for a worth of": replaced(RECORD, margin=0.2),
    "walls and": replaced(RECORD, warm=replaced(RECORD.warm, dispatched_ns=[1])),
    "warm samples: none": replaced(RECORD, warm=replaced(RECORD.warm, wall_ns=[], dispatched_ns=[])),
    "sum to": replaced(
        RECORD, regions=[replaced(FIRST, time_ns=[each * 1.001 for each in FIRST.time_ns]), *RECORD.regions[1:]]
    ),
    "in each traced step": replaced(RECORD, regions=[replaced(FIRST, time_ns=[]), *RECORD.regions[1:]]),
    "the share of": replaced(RECORD, regions=[replaced(FIRST, share_high=0.9), *RECORD.regions[1:]]),
    "mapping by": replaced(RECORD, mapping={**RECORD.mapping, "scope": 0.1}),
    "overhead is": replaced(RECORD, overhead=replaced(RECORD.overhead, ratio=1.5)),
    "the step without": replaced(RECORD, ablations=[replaced(RECORD.ablations[0], difference_ns=7.0)]),
    "the staged total": replaced(RECORD, staged=replaced(RECORD.staged, ratio=2.0)),
    "the opportunity of": replaced(RECORD, opportunity=[replaced(RECORD.opportunity[0], speedup=9.0)]),
    "opportunity of the unknown": replaced(RECORD, opportunity=[replaced(RECORD.opportunity[0], region="else")]),
}


def test_a_sound_profile_has_no_faults() -> None:
    assert told(RECORD) == []
    assert consistency(evidence_with(RECORD), decide(evidence_with(RECORD))) == []


@pytest.mark.parametrize("text", FAULTS)
def test_a_contradiction_is_told(text: str) -> None:
    assert any(text in each for each in told(FAULTS[text]))


def test_names_inside_traces_are_found(tmp_path: Path) -> None:
    import gzip

    message = bytearray()
    inner = bytearray()
    append_field(inner, 2, 2, b"/srv/homes/quillon/step.py")
    append_field(message, 1, 2, bytes(inner) + b"\x08\x01")
    (tmp_path / "trace.xplane.pb").write_bytes(bytes(message))
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress(b'{"a":"made on box-7731"}'))
    (tmp_path / "broken.json.gz").write_bytes(b"\x1f\x8b\x08\x00nothing")
    found = {(each.file, each.kind) for each in private_text(tmp_path, ["box-7731"])}
    assert found == {
        ("trace.xplane.pb", "private"),
        ("trace.json.gz", "private"),
        ("broken.json.gz", "unreadable"),
    }
