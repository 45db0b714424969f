"""A word that no rule knows is a fault of the bundle, never a traceback."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sample_evidence
import sample_without_device
import workload_sample
from sample_evidence import replaced

from kernel_audit.decision import decide, verify
from kernel_audit.decision.strangers import strangers
from kernel_audit.errors import BundleError
from kernel_audit.evidence import Evidence, write_bundle

BASE = sample_evidence.agreeing().evidence
FOUND = [sample_without_device.static_finding("invented")]
KERNEL = replaced(BASE.kernels[0], findings=FOUND)
WRONG = workload_sample.run(side="candidate", outcome="wrong", codes=["invented"])
STRANGE = {
    "kernels.json": replace(BASE, kernels=[KERNEL, *BASE.kernels[1:]]),
    "compiled.jsonl": replace(BASE, compiled=[sample_without_device.compiled(BASE.programs[0], findings=FOUND)]),
    "cells.jsonl": replace(BASE, cells=[replaced(BASE.cells[0], outcome="differs", code="invented"), *BASE.cells[1:]]),
    "workload.json": replace(BASE, workload=workload_sample.record(workload_sample.run(), WRONG)),
    "refusals.jsonl": replace(BASE, refusals=[replaced(BASE.refusals[0], outcome="invented")]),
}


def test_evidence_of_this_version():
    assert strangers(BASE) == []


@pytest.mark.parametrize("file", STRANGE)
def test_an_unknown_word_is_told_at_its_file(file):
    (found,) = strangers(STRANGE[file])
    assert found.file.endswith(file) and "'invented'" in found.text
    with pytest.raises(BundleError, match="does not know"):
        decide(STRANGE[file])


@pytest.mark.parametrize("file", ["kernels.json", "compiled.jsonl"])
def test_verify_names_it(file, tmp_path):
    evidence: Evidence = STRANGE[file]
    write_bundle(evidence, decide(BASE), sample_evidence.SOURCES, {}, b"<html></html>", tmp_path / "bundle")
    assert [each.text for each in verify(tmp_path / "bundle") if "'invented'" in each.text]
