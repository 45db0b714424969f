"""Receipts as rows and lines: what ran on which device, losses too, and which of it does not count."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_audit.decision import counted
from kernel_audit.evidence import Evidence
from kernel_audit.records import Ratio, Receipt, receipt_name


@dataclass(frozen=True)
class ReceiptRow:
    """One receipt in words; `ignored` is the code for which it does not count, empty where it does."""

    what: str
    device: str
    sides: str
    verdict: str
    ratio: str
    control: str
    shares: str
    ignored: str


def receipt_rows(evidence: Evidence) -> list[ReceiptRow]:
    """Every receipt of the evidence, in its order."""
    if not evidence.receipts:
        return []
    codes = {name: each.code for each in counted(evidence).ignored for name in each.records}
    return [_row(each, codes.get(receipt_name(each), "")) for each in evidence.receipts]


def receipt_texts(evidence: Evidence) -> list[str]:
    """One text each."""
    return [
        f"{each.what}, {each.device}: {each.verdict}; {each.sides}; ratio {each.ratio}, control {each.control}; {each.shares}"
        + (f"; ignored: {each.ignored}" if each.ignored else "")
        for each in receipt_rows(evidence)
    ]


def _row(receipt: Receipt, ignored: str) -> ReceiptRow:
    verdict = receipt.verdict
    chosen = {each.role: each.chosen for each in receipt.choices}
    shares = [f"{each.role} {each.share_of_copy:.0%}" for each in receipt.achieved if each.share_of_copy is not None]
    return ReceiptRow(
        what=f"{receipt.part}, {receipt.dtype}",
        device=f"{receipt.target} ({receipt.device.kind})",
        sides=f"{chosen.get('candidate', 'candidate')} against {chosen.get('baseline', 'baseline')}",
        verdict=verdict.verdict if verdict is not None else f"failed: {receipt.failures[0].what}",
        ratio=_ratio_text(verdict.ratio if verdict is not None else None),
        control=_ratio_text(verdict.control if verdict is not None else None),
        shares=f"of the measured copy: {', '.join(shares)}" if shares else "no ceiling to compare with",
        ignored=ignored,
    )


def _ratio_text(ratio: Ratio | None) -> str:
    if ratio is None:
        return "none"
    high = f"{ratio.high:.3f}" if ratio.high is not None else "unbounded"
    return f"{ratio.ratio:.3f} [{ratio.low:.3f}, {high}]"
