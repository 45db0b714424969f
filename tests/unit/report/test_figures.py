"""The precision-gap figure: right numbers, right scope, the same bytes for the same evidence."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
import sample_evidence
from sample_evidence import Sample, replaced

from kernel_audit.evidence import Evidence
from kernel_audit.records import encode
from kernel_audit.report import precision_gap_figure
from kernel_audit.report.figures import GapFigure, precision_gaps


@pytest.fixture(scope="module")
def sample() -> Sample:
    return sample_evidence.agreeing()


@pytest.fixture(scope="module")
def drawn(sample: Sample) -> dict[str, bytes]:
    return precision_gap_figure(sample.evidence)


def without_sequences(evidence: Evidence) -> Evidence:
    audit = replaced(evidence.frozen.audit, sequences=[])
    return replace(evidence, frozen=replaced(evidence.frozen, audit=audit))


def test_there_are_a_drawing_a_picture_and_the_data(drawn: dict[str, bytes]) -> None:
    assert list(drawn) == ["precision-gap.svg", "precision-gap.png", "precision-gap.json"]
    assert drawn["precision-gap.svg"].startswith(b"<svg")
    assert drawn["precision-gap.png"].startswith(b"\x89PNG")


def test_data_are_the_largest_gaps_of_the_sequence_by_fixture_and_dtype(drawn: dict[str, bytes]) -> None:
    data = msgspec.json.decode(drawn["precision-gap.json"], type=GapFigure)
    assert encode(data) == drawn["precision-gap.json"]
    assert [(each.fixture, each.dtype, each.representation_gap_max) for each in data.rows] == [
        ("lesson-1x1", "float32", 0.0),
        ("lesson-1x1", "bfloat16", 0.0),
        ("lesson-9x129", "float32", 0.0),
        ("lesson-9x129", "bfloat16", 0.025217056274414062),
    ]
    assert data.fixtures == "sequence lesson"


def test_the_drawing_says_its_scope_its_unit_and_shows_zeros(drawn: dict[str, bytes]) -> None:
    text = drawn["precision-gap.svg"].decode()
    for expected in (
        "CPU interpretation: values only, no time",
        "max |difference|, in the unit of the result",
        "0.0252",
    ):
        assert expected in text
    assert text.count(">0</text>") >= 3  # each zero bar is labelled, beside the axis's own zero


def test_the_same_evidence_gives_the_same_bytes(sample: Sample, drawn: dict[str, bytes]) -> None:
    assert precision_gap_figure(sample.evidence) == drawn


def test_the_largest_of_several_cells_counts(sample: Sample) -> None:
    twin = replaced(sample.evidence.cells[0], id="again", representation_gap_max=0.5)
    evidence = replace(sample.evidence, cells=[*sample.evidence.cells, twin])
    assert precision_gaps(evidence).rows[0].representation_gap_max == 0.5


def test_without_a_sequence_the_normal_family_is_drawn(sample: Sample) -> None:
    cells = [
        replaced(each, fixture="9x129-normal", family="normal") if each.family == "overflow" else each
        for each in sample.evidence.cells
    ]
    evidence = without_sequences(replace(sample.evidence, cells=[*cells[:2], *cells[4:]]))
    assert {each.fixture for each in precision_gaps(evidence).rows} == {"lesson-1x1", "9x129-normal"}
    other = [replaced(each, family="ties") for each in cells]
    assert precision_gaps(without_sequences(replace(evidence, cells=other))).rows == []


def test_nothing_is_drawn_where_nothing_was_measured(sample: Sample) -> None:
    cells = [replaced(each, representation_gap_max=None) for each in sample.evidence.cells]
    assert precision_gap_figure(replace(sample.evidence, cells=cells)) == {}
    assert precision_gap_figure(replace(sample.evidence, cells=[])) == {}


def test_a_fixture_without_a_finite_element_is_shown_as_such(sample: Sample) -> None:
    cells = [replaced(sample.evidence.cells[0], representation_gap_max=None), *sample.evidence.cells[1:]]
    svg = precision_gap_figure(replace(sample.evidence, cells=cells))["precision-gap.svg"].decode()
    assert "no finite element" in svg
