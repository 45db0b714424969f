"""What a side reached of its device, and what a pilot said: figures of a receipt, recomputed by whoever reads it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from kernel_audit.records.receipts import Achieved, Ceiling
from kernel_audit.records.timing import Session, TimingVerdict
from kernel_audit.statistics.ratios import log_ratios
from kernel_audit.statistics.summary import median

COPY, PRODUCT = "copy", "matrix-product"
LARGE_BYTES = 256 << 20  # operands of this size lie in no cache
FLOOR_ALLOWANCE = 1.25  # a program that mostly reads may pass a copy, which reads and writes, by so much


def ceiling_per_s(work: float, samples_s: Sequence[float]) -> float:
    """Work a second in the median sample: bytes read and written, or operations."""
    return work / median(samples_s)


def largest_ceiling(ceilings: Iterable[Ceiling], kind: str, dtype: str | None = None) -> float | None:
    """The largest of a kind, and of `dtype` where one is named: bytes or operations a second. None where none was measured."""
    return max((each.per_s for each in ceilings if each.kind == kind and dtype in (None, each.dtype)), default=None)


def least_s(least_bytes: int, operand_bytes: int, ceilings: Iterable[Ceiling]) -> float:
    """The least time that bytes allow any program; 0 where operands may lie in a cache, or no copy was measured."""
    copy = largest_ceiling(ceilings, COPY)
    return least_bytes / (FLOOR_ALLOWANCE * copy) if copy and operand_bytes >= LARGE_BYTES else 0.0


def achieved(
    verdict: TimingVerdict,
    *,
    least_bytes: int,
    flops: float | None,
    dtype: str,
    ceilings: Iterable[Ceiling],
) -> list[Achieved]:
    """Of each side, in its median time; empty where the session reports no times.

    A share is of the largest ceiling of its kind, for products among those of `dtype`.
    """
    known = list(ceilings)
    copy, product = largest_ceiling(known, COPY), largest_ceiling(known, PRODUCT, dtype)
    found = []
    for side in verdict.sides:
        if side.median_s <= 0:
            continue
        per_s = least_bytes / side.median_s
        flops_per_s = flops / side.median_s if flops else None
        found.append(
            Achieved(
                role=side.role,
                median_s=side.median_s,
                least_bytes=least_bytes,
                bytes_per_s=per_s,
                share_of_copy=per_s / copy if copy else None,
                flops=flops,
                flops_per_s=flops_per_s,
                share_of_product=flops_per_s / product if product and flops_per_s else None,
            )
        )
    return found


def pilot_ratio(session: Session) -> tuple[float | None, int]:
    """(median of pair ratios, pairs that count) of a pilot; None where no pair counted."""
    logs = [
        value
        for process in session.processes
        for value, void in zip(
            log_ratios(process.comparison.left_s, process.comparison.right_s, session.clock.step_s),
            process.comparison.voided,
            strict=True,
        )
        if not void
    ]
    return (math.exp(median(logs)), len(logs)) if logs else (None, 0)
