"""The table that chooses between kernel and baseline, and what it would be worth: calculated, never measured."""

from __future__ import annotations

from collections.abc import Iterable

from kernel_audit.contract.regimes import regime_text
from kernel_audit.decision.worth import sound
from kernel_audit.records import KEEP, STEP, Receipt, Regime


def table_text(regimes: Iterable[Regime]) -> str:
    """What each regime says, and how often it occurs, where the audit states that."""
    return "; ".join(
        f"{each.name}{f' ({each.frequency:.0%} of calls)' if each.frequency is not None else ''}: {each.decision or 'none'}"
        for each in regimes
    )


def mean_text(regimes: list[Regime], receipts: list[Receipt]) -> str:
    """The mean by frequency of the steps' ratios, the kernel where it is kept and the baseline elsewhere, for each target.

    Empty where no frequency is stated, nothing is kept, or a kept regime has no step whose ratio holds.
    """
    found = []
    for target in dict.fromkeys(each.target for each in regimes):
        here = [each for each in regimes if each.target == target]
        if any(each.frequency is None for each in here) or not any(each.decision == KEEP for each in here):
            continue
        ratios = [_ratio(each, receipts) if each.decision == KEEP else 1.0 for each in here]
        if None not in ratios:
            mean = sum((each.frequency or 0.0) * (ratio or 0.0) for each, ratio in zip(here, ratios, strict=True))
            found.append(f"on {target} the mean step would take {mean:.3f} of the baseline's time")
    return (
        f"{'; '.join(found)}, by the stated frequencies; calculated, since no dispatcher was measured" if found else ""
    )


def _ratio(regime: Regime, receipts: list[Receipt]) -> float | None:
    """The worst of the ratios that steps of this regime showed."""
    shown = [
        each.verdict.ratio.ratio
        for each in receipts
        if (each.part, each.target) == (STEP, regime.target)
        and regime_name(each) == regime.name
        and each.verdict is not None
        and each.verdict.ratio is not None
        and sound(each)
    ]
    return max(shown, default=None)


def regime_name(receipt: Receipt) -> str:
    """The regime that a receipt is of."""
    return f"{receipt.target}, {regime_text(receipt.dtype, receipt.mode)}"
