"""What a kernel costs those who keep it: its configurations, counted as they are stated."""

from __future__ import annotations

import dataclasses

import pytest
import sample_evidence
from sample_evidence import replaced

from kernel_audit.contract.words import on
from kernel_audit.report.complexity import complexity


@pytest.mark.parametrize(
    ("tuning", "text"),
    [
        ({}, "1 configuration, nothing to choose"),
        ({"block": [[8, 128], [16, 256]], "buffers": [2]}, "2 configurations: 2 block \u00d7 1 buffers"),
        (
            [on("tpu", rows=[512, 1024]), on("gpu:h200", "gpu:h100")],
            "for tpu 2 configurations: 2 rows; for gpu:h200 and gpu:h100 1 configuration, nothing to choose",
        ),
    ],
)
def test_configurations_are_counted_for_the_targets_that_they_are_for(tuning, text):
    evidence = sample_evidence.agreeing().evidence
    audit = replaced(evidence.frozen.audit, tuning=tuning)
    frozen = replaced(evidence.frozen, audit=audit)
    assert complexity(dataclasses.replace(evidence, frozen=frozen), None).configurations == text
