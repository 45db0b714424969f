"""A receipt has to say of every judged file which one was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sample_receipts
from sample_evidence import replaced

from kernel_audit.contract import FunctionRef
from kernel_audit.decision.receipts import counted
from kernel_audit.evidence import Evidence
from kernel_audit.records import digest_of

JUDGED = {"package/kernel.py": digest_of("kernel"), "package/lowering.py": digest_of("lowering")}


def evidence(sources: dict[str, str], judged: dict[str, str] = JUDGED) -> Evidence:
    """One receipt that says `sources`, of a candidate that is named by its module, as every built-in is."""
    base = sample_receipts.evidence()
    audit = replaced(base.frozen.audit, candidate=FunctionRef(module="package.kernel", name="double"))
    base = replace(base, frozen=replaced(base.frozen, audit=audit, sources=judged))
    return replace(base, receipts=[sample_receipts.receipt(audit, sources=sources)])


@pytest.mark.parametrize(
    "sources",
    [
        {},
        {"package/kernel.py": JUDGED["package/kernel.py"]},
        {**JUDGED, "package/lowering.py": digest_of("edited since")},
    ],
)
def test_a_judged_file_that_is_not_there_or_another_one_is_another_source(sources: dict[str, str]):
    found = counted(evidence(sources))
    assert (found.valid, [each.code for each in found.ignored]) == ([], ["receipt-other-source"])


def test_a_receipt_may_say_more_than_was_judged():
    assert len(counted(evidence({**JUDGED, "package/more.py": digest_of("more")})).valid) == 1


def test_where_nothing_was_judged_no_receipt_counts():
    assert counted(evidence(JUDGED, {})).valid == []
