"""Contradictions within what was read and what was compiled are found, each at its record."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import sample_evidence
import sample_without_device
from sample_evidence import replaced

from kernel_audit.evidence import consistency
from kernel_audit.records import CompilerReason, Finding, Ownership, Traffic

SAMPLE = sample_evidence.agreeing()
PROGRAM = SAMPLE.evidence.programs[0]


def texts(**changes: Any) -> list[str]:
    return [f"{each.file}: {each.text}" for each in consistency(replace(SAMPLE.evidence, **changes), SAMPLE.decision)]


def with_kernel(**changes: Any) -> list[str]:
    return texts(kernels=[sample_without_device.inspection(PROGRAM, **changes), *SAMPLE.evidence.kernels[1:]])


def with_compiled(**changes: Any) -> list[str]:
    return texts(compiled=[sample_without_device.compiled(PROGRAM, **changes)])


def test_records_that_agree() -> None:
    assert with_kernel() == [] and with_compiled() == []
    assert texts(compiled=[sample_without_device.refused(PROGRAM)]) == []


@pytest.mark.parametrize(
    ("changes", "told"),
    [
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
    found = texts(compiled=[replaced(refused, accepted=True)])
    assert "accepted, with a reason to refuse it" in found[0]
    assert "a finding 'compiler-refuses', and accepted is True" in found[1] and len(found) == 2


def test_a_kernel_of_an_unknown_program() -> None:
    found = with_kernel(program="p999")
    assert "unknown program 'p999'" in found[0] and f"{PROGRAM.key!r}, and the environment" in found[1]


def owned(**changes: Any) -> Ownership:
    return replaced(sample_without_device.inspection(PROGRAM).ownership, **changes)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"ownership": owned(uncovered=3)}, "3 blocks are written by no program, and no finding says so"),
        ({"ownership": owned(out_of_range=2)}, "2 programs are out of range, and no finding says so"),
        ({"findings": [sample_without_device.static_finding("block-uncovered")]}, "blocks are uncovered, and none is"),
    ],
)
def test_counts_without_their_finding(changes: dict[str, Any], told: str) -> None:
    (found,) = with_kernel(**changes)
    assert told in found


def test_counts_that_imply_no_finding() -> None:
    uncovered = owned(uncovered=3)
    assert with_kernel(ownership=uncovered, aliases=[[0, 0]]) == []  # the operand's blocks stay
    assert with_kernel(ownership=uncovered, findings=[sample_without_device.static_finding("block-uncovered")]) == []
    dead = [sample_without_device.static_finding("kernel-not-in-program")]
    assert with_kernel(ownership=uncovered, findings=dead) == []


def test_every_captured_kernel_has_a_record() -> None:
    (found,) = texts(kernels=[])
    assert found.startswith("kernels.json") and f"the kernels of {len(SAMPLE.evidence.programs)} programs" in found
    one_less = SAMPLE.evidence.kernels[1:]
    (found,) = texts(kernels=one_less)
    assert "of 1 programs" in found
    said = "the kernels of 1 programs could not be read, first ValueError: so"
    environment = replaced(SAMPLE.evidence.environment, not_run=[said])
    assert texts(kernels=one_less, environment=environment) == []
    kernel = PROGRAM.kernels[0]
    two = replaced(PROGRAM, kernels=[kernel, replaced(kernel, path="pallas_call#1")])
    (found,) = texts(programs=[two, *SAMPLE.evidence.programs[1:]], environment=environment)
    assert "'pallas_call#1'" in found and "has no record" in found


GONE = [replaced(sample_without_device.compiled(PROGRAM).kernels[0], found=False)]
NOT_THERE = Finding(
    code="kernel-not-in-program", subject="kernel", text=f"double_kernel ({GONE[0].path}) is not in the program"
)
WORKER = CompilerReason(stage="worker", kind="exited", text="the worker exited")
OWN = CompilerReason(stage="candidate", kind="TypeError", text="so")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"kernels": GONE}, "is not in the compiled program, and its findings say otherwise"),
        ({"findings": [NOT_THERE]}, "is in the compiled program, and its findings say otherwise"),
        ({"accepted": None, "reason": WORKER}, "accepted is None, and no finding 'not-compiled' says so"),
        ({"accepted": False, "reason": WORKER}, "no finding 'compiler-refuses' says so"),
        ({"accepted": False, "reason": OWN}, "no finding 'candidate-raises' says so"),
        ({"side": "fused", "accepted": False, "reason": OWN}, "no finding 'baseline-raises' says so"),
        ({"spills": 4}, "4 spills, and no finding 'kernel-spills' says so"),
        ({"declared": False}, "declared is False, and the audit is for"),
        ({"target": "tpu:v99"}, "a target that is not described"),
    ],
)
def test_a_verdict_without_its_finding(changes: dict[str, Any], told: str) -> None:
    (found,) = with_compiled(**changes)
    assert told in found


def test_a_kernel_that_is_gone_with_its_finding() -> None:
    assert with_compiled(kernels=GONE, findings=[NOT_THERE]) == []
