"""Contradictions within what was read and what was compiled are found, each at its record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import sample_evidence
import sample_without_device
from sample_evidence import replaced

from kernel_audit.evidence import consistency
from kernel_audit.records import Traffic

SAMPLE = sample_evidence.agreeing()
PROGRAM = SAMPLE.evidence.programs[0]


def texts(**changes: Any) -> list[str]:
    return [f"{each.file}: {each.text}" for each in consistency(replace(SAMPLE.evidence, **changes), SAMPLE.decision)]


def with_kernel(**changes: Any) -> list[str]:
    return texts(kernels=[sample_without_device.inspection(PROGRAM, **changes)])


def with_compiled(**changes: Any) -> list[str]:
    return texts(compiled=[sample_without_device.compiled(PROGRAM, **changes)])


def test_records_that_agree() -> None:
    assert with_kernel() == [] and with_compiled() == []
    assert texts(compiled=[sample_without_device.refused(PROGRAM)]) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"program": "p999"}, "unknown program 'p999'"),
        ({"digest": "sha256:other"}, "not one that was captured"),
        ({"programs": 5}, "5 programs in a grid of [2, 2]"),
        ({"bytes": Traffic(moved=1, clipped=2, floor=1, claimed=None, derivation="grid")}, "its clipped bytes, 2"),
        ({"bytes": Traffic(moved=9, clipped=2, floor=3, claimed=None, derivation="grid")}, "its floor bytes, 3"),
        ({"provenance": "measured"}, "it was read"),
    ],
)
def test_a_kernel_that_contradicts(changes: dict[str, Any], told: str) -> None:
    (found,) = with_kernel(**changes)
    assert found.startswith("kernels.json") and told in found


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"side": "stranger"}, "an unknown side"),
        ({"accepted": False}, "not accepted, for no reason"),
        ({"accepted": None}, "not accepted, for no reason"),
        ({"copy_seconds": 1e-9, "floor_seconds": 1e-9, "schedule_seconds": None}, "its bytes give"),
        ({"floor_seconds": 1e-12}, "copies and schedule give"),
        ({"provenance": "measured"}, "it is a static model"),
    ],
)
def test_a_compilation_that_contradicts(changes: dict[str, Any], told: str) -> None:
    (found,) = with_compiled(**changes)
    assert found.startswith("compiled.jsonl") and told in found


def test_accepted_with_a_reason_to_refuse() -> None:
    refused = sample_without_device.refused(PROGRAM)
    (found,) = texts(compiled=[replaced(refused, accepted=True)])
    assert "accepted, with a reason to refuse it" in found
