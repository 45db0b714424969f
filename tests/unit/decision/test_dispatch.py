"""The dispatch table: what each regime says and how often it occurs, and a mean that is calculated and decides nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sample_receipts
from sample_receipts import measured

from kernel_audit.decision import decide
from kernel_audit.evidence import Evidence
from kernel_audit.records import AWAIT, KEEP

SHARES = {"float32": 0.25, "bfloat16": 0.75}


def mixed(**audit: object) -> Evidence:
    """Kept in float32 at a ratio of 0.8, lost in bfloat16."""
    kept = measured(audit=audit)
    slow = sample_receipts.receipt(kept.frozen.audit, part="step", dtype="bfloat16", ratio=1.2, number=4, of=4)
    return replace(kept, receipts=[*kept.receipts[:3], slow])


def told(evidence: Evidence) -> str:
    return next(each.text for each in decide(evidence).findings if each.code == "dispatcher-unmeasured")


def test_the_table_names_shares_and_the_mean_that_they_give():
    decision = decide(mixed(frequencies=SHARES))
    assert decision.decision == AWAIT
    assert [each.frequency for each in decision.regimes] == [0.25, 0.75]
    said = told(mixed(frequencies=SHARES))
    assert "tpu:v5e, float32 (25% of calls): keep" in said and "bfloat16 (75% of calls): use-the-baseline" in said
    mean = float(said.partition("the mean step would take ")[2].split()[0])
    assert mean == pytest.approx(0.25 * 0.8 + 0.75, abs=2e-3)
    assert said.endswith("calculated, since no dispatcher was measured")


def test_without_frequencies_there_is_a_table_and_no_mean():
    assert "of calls" not in told(mixed()) and "mean step" not in told(mixed())
    assert [each.frequency for each in decide(mixed()).regimes] == [None, None]


def test_frequencies_decide_nothing():
    seldom = decide(mixed(frequencies={"float32": 1.0, "bfloat16": 0.0}))
    assert seldom.decision == AWAIT
    assert decide(measured(audit={"frequencies": SHARES})).decision == KEEP
