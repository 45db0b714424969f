"""Records that contradict each other are found, each at its own place."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sample_evidence
from sample_evidence import Sample, replaced

from kernel_audit.evidence import consistency, read_manifest, record_names, write_bundle
from kernel_audit.records import Finding


def texts(sample: Sample) -> list[str]:
    return [f"{each.place}: {each.text}" for each in consistency(sample.evidence, sample.decision)]


def with_first(sample: Sample, kind: str, **changes: Any) -> Sample:
    """The sample with its first record of a kind changed."""
    records = list(getattr(sample.evidence, kind))
    records[0] = replaced(records[0], **changes)
    return replace(sample, evidence=replace(sample.evidence, **{kind: records}))


def with_frozen(sample: Sample, **changes: Any) -> Sample:
    frozen = replaced(sample.evidence.frozen, **changes)
    return replace(sample, evidence=replace(sample.evidence, frozen=frozen))


def with_decision(sample: Sample, **changes: Any) -> Sample:
    return replace(sample, decision=replaced(sample.decision, **changes))


def without_a_cell(sample: Sample) -> Sample:
    return replace(sample, evidence=replace(sample.evidence, cells=sample.evidence.cells[1:]))


def with_a_cell_twice(sample: Sample) -> Sample:
    return replace(sample, evidence=replace(sample.evidence, cells=[*sample.evidence.cells, sample.evidence.cells[0]]))


def with_a_program_twice(sample: Sample) -> Sample:
    programs = [*sample.evidence.programs, sample.evidence.programs[0]]
    return replace(sample, evidence=replace(sample.evidence, programs=programs))


@pytest.mark.parametrize("sample", [sample_evidence.agreeing(), sample_evidence.failing()])
def test_honest_evidence_has_no_contradiction(sample: Sample) -> None:
    assert consistency(sample.evidence, sample.decision) == []


SPOILED: list[tuple[Callable[[Sample], Sample], str]] = [
    (without_a_cell, "cells.jsonl: planned cell"),
    (with_a_cell_twice, "two records of cell"),
    (with_a_program_twice, "two records of program"),
    (lambda s: with_first(s, "cells", id="elsewhere"), "cells.jsonl, line 1: cell 'elsewhere' was not planned"),
    (lambda s: with_first(s, "cells", program="sha256:0"), "is not the one captured as p000"),
    (lambda s: with_first(s, "cells", fixture="lesson-9x129"), "fixture is 'lesson-9x129'"),
    (lambda s: with_first(s, "cells", dtype="int8"), "dtype is 'int8'"),
    (lambda s: with_first(s, "cells", dims={"m": 2, "n": 1}), "dims is"),
    (lambda s: with_first(s, "cells", engine="generic"), "engine is 'generic'"),
    (lambda s: with_first(s, "cells", configuration={"block": [1]}), "configuration is"),
    (lambda s: with_first(s, "cells", outcome="fine"), "unknown outcome 'fine'"),
    (lambda s: with_first(s, "cells", level="imagined"), "unknown level"),
    (lambda s: with_first(s, "cells", differing=1), "agrees, with 1 differing"),
    (lambda s: with_first(s, "cells", differing=None), "nothing was compared"),
    (lambda s: with_first(s, "cells", outcome="recorded"), "its outcome is only recorded"),
    (lambda s: with_first(s, "cells", fixture_digest="sha256:0"), "other data than other cells"),
    (lambda s: with_first(s, "controls", fixture="none"), "controls.jsonl, line 1: control 'oracle' on the unknown"),
    (lambda s: with_first(s, "controls", dtype="int8"), "unplanned dtype"),
    (lambda s: with_first(s, "controls", name="baseline:other"), "unknown baseline"),
    (lambda s: with_first(s, "controls", outcome="maybe"), "unknown words"),
    (lambda s: with_first(s, "controls", outcome="not-applicable"), "for no reason"),
    (lambda s: with_first(s, "refusals", name="invented"), "refusals.jsonl, line 1"),
    (lambda s: with_first(s, "programs", key="p999"), "unknown program 'p999'"),
    (lambda s: with_first(s, "programs", side="stranger"), "unknown side 'stranger'"),
    (lambda s: with_frozen(s, late_seed=1), "late seed is not the one"),
    (lambda s: with_decision(s, audit="another"), "decides on 'another'"),
    (lambda s: with_decision(s, decision="maybe"), "unknown decision"),
    (lambda s: with_decision(s, level="dreamt"), "unknown level"),
    (lambda s: with_decision(s, counts={"agrees": 6}), "decision.json: counts"),
    (lambda s: with_decision(s, findings=[Finding(code="c", subject="kernel", text="", records=["ghost"])]), "'ghost'"),
    (lambda s: with_decision(s, findings=[Finding(code="c", subject="nobody", text="")]), "subject 'nobody'"),
]


@pytest.mark.parametrize(("spoil", "expected"), SPOILED, ids=[text for _, text in SPOILED])
def test_a_contradiction_is_found(spoil: Callable[[Sample], Sample], expected: str) -> None:
    found = texts(spoil(sample_evidence.agreeing()))
    assert any(expected in each for each in found), found


def test_a_cell_whose_program_was_never_captured_needs_no_digest() -> None:
    sample = with_first(sample_evidence.agreeing(), "cells", program="")
    assert any("is not the one captured" in each for each in texts(sample))
    evidence = sample.evidence
    missing = replace(evidence, programs=evidence.programs[1:], kernels=evidence.kernels[1:])
    assert consistency(missing, sample.decision) == []


def test_counts_of_zero_count_as_not_stated() -> None:
    sample = sample_evidence.agreeing()
    assert texts(with_decision(sample, counts={**sample.decision.counts, "crashed": 0})) == []


def test_the_manifest_must_say_what_the_records_say(tmp_path: Path) -> None:
    sample = sample_evidence.agreeing()
    write_bundle(sample.evidence, sample.decision, sample.sources, {}, b"", tmp_path / "b")
    manifest = read_manifest(tmp_path / "b")
    assert consistency(sample.evidence, sample.decision, manifest) == []
    other = with_decision(sample, decision="keep")
    assert [each.file for each in consistency(other.evidence, other.decision, manifest)] == ["manifest.json"]
    resourced = with_frozen(sample, sources={"doubling/kernel.py": "sha256:0"})
    found = consistency(resourced.evidence, resourced.decision, manifest)
    assert {each.file for each in found} == {"manifest.json", "audit.json"}


def test_findings_may_rest_on_every_kind_of_record() -> None:
    sample = sample_evidence.failing()
    names = record_names(sample.evidence)
    program = sample.evidence.programs[0]
    expected = {"oracle", "integers", "lesson-9x129", "p000", program.digest, "fused", "environment.json", "doubling"}
    assert expected <= names


def test_a_control_that_only_one_fixture_lacks_is_missed():
    sample = sample_evidence.agreeing()
    assert len({each.fixture for each in sample.evidence.controls}) > 1
    short = replace(sample, evidence=replace(sample.evidence, controls=sample.evidence.controls[1:]))
    assert any("is missing on fixture" in each for each in texts(short))


def test_a_cell_that_contradicts_its_baseline_controls_is_found():
    sample = with_first(sample_evidence.agreeing(), "cells", baseline_outcome="values-differ")
    assert any("which its controls contradict" in each for each in texts(sample))


def test_a_shape_that_is_not_that_of_the_dimensions_is_found():
    sample = sample_evidence.agreeing()
    wrong = [each + 1 for each in sample.evidence.cells[0].shape]
    assert any("shape is" in each for each in texts(with_first(sample, "cells", shape=wrong)))
