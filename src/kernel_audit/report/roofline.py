"""The roofline of each device that receipts came from: what both sides reached, under the ceilings measured on that device.

One figure a device kind, from receipts that count. Where operations or a ceiling are not known, the data say so and nothing is
drawn in their place.
"""

from __future__ import annotations

import re

from kernel_audit.decision import counted
from kernel_audit.evidence import Evidence
from kernel_audit.records import Achieved, Receipt, Record, encode, receipt_name
from kernel_audit.report.figures import drawn
from kernel_audit.report.phrases import choice_text
from kernel_audit.report.roofline_chart import roofline_chart
from kernel_audit.statistics import COPY, PRODUCT, attainable_per_s, balance, intensity, largest_ceiling

ROOFLINE = "roofline"
IDEAL = "ideal"
SCOPE = (
    "Floors are of operands and results of the contract, each once, for a step too. Operations are those that the compiler "
    "counts in the baseline, for both sides. Ceilings were measured first on that device, by plain programs: a copy, and a "
    "matrix product in the dtype of the comparison. The ideal line is the lower of the two; for work that is no product, the "
    "true one may be lower still."
)

_LARGEST = 1e30  # operations or bytes a second, and operations per byte; the inverse is the least


class Roof(Record, kw_only=True):
    """Ceilings as `receipts` have them: bytes a second of the copy, operations a second of products in `dtype`, and the
    operations per byte at which the two meet."""

    dtype: str
    copy_bytes_per_s: float
    product_flops_per_s: float
    balance_flops_per_byte: float
    receipts: list[str]


class RooflinePoint(Record, kw_only=True):
    """One side of a comparison in its median time, or the "ideal": what the nearer ceiling (`limit`) leaves to any program.

    `share_of_ideal` is above 1 where operands lay in a cache, or where fewer operations were needed than are counted.
    """

    receipt: str
    label: str
    side: str
    dtype: str
    flops_per_byte: float
    flops_per_s: float
    share_of_ideal: float
    limit: str


class NotDrawn(Record, kw_only=True):
    """A receipt that counts and has no place in the figure."""

    receipt: str
    label: str
    why: str


class RooflineFigure(Record, kw_only=True):
    """The data of one figure. `name` is that of its files; `device` is what JAX calls the device."""

    schema: str = "kernel-audit/roofline/1"
    name: str
    device: str
    scope: str
    roofs: list[Roof]
    points: list[RooflinePoint]
    not_drawn: list[NotDrawn]


def roofline_figures(evidence: Evidence) -> dict[str, bytes]:
    """ "roofline-KIND.json" for each device kind, with ".svg" and ".png" where a point can be drawn. Empty where no receipt
    counts. The same evidence gives the same bytes."""
    figures: dict[str, bytes] = {}
    for data in rooflines(evidence):
        if data.points:
            figures[f"{data.name}.svg"], figures[f"{data.name}.png"] = drawn(roofline_chart(data))
        figures[f"{data.name}.json"] = encode(data)
    return figures


def rooflines(evidence: Evidence) -> list[RooflineFigure]:
    """The data of every figure, in the order in which the receipts name their devices."""
    found: dict[str, list[Receipt]] = {}
    for each in counted(evidence).valid if evidence.receipts else []:
        found.setdefault(each.device.kind, []).append(each)
    names: dict[str, str] = {}
    for kind in found:
        names[kind] = _free_name(kind, set(names.values()))
    return [_figure(names[kind], kind, receipts) for kind, receipts in found.items()]


def point_texts(data: RooflineFigure) -> list[str]:
    """The points in words: "program, float32, candidate: 1.2e+12 operations/s at 0.5 per byte, 80 % of the ideal"."""
    return [
        f"{each.label}, {each.side}: {each.flops_per_s:.3g} operations/s at {each.flops_per_byte:.3g} per byte"
        + (f", {each.share_of_ideal:.0%} of the ideal" if each.side != IDEAL else f", limited by the {each.limit}")
        for each in data.points
    ]


def not_drawn_texts(evidence: Evidence) -> list[str]:
    """What no roofline shows, one text each."""
    return [
        f"not on the roofline of {data.device}: {each.label}: {each.why}"
        for data in rooflines(evidence)
        for each in data.not_drawn
    ]


def _figure(name: str, kind: str, receipts: list[Receipt]) -> RooflineFigure:
    roofs: list[Roof] = []
    points: list[RooflinePoint] = []
    not_drawn: list[NotDrawn] = []
    for each in receipts:
        if why := _why_not(each):
            not_drawn.append(NotDrawn(receipt=receipt_name(each), label=_label(each), why=why))
            continue
        copy, product = _ceilings(each)
        assert copy and product
        points += _points(each, copy, product)
        _add_roof(roofs, each, copy, product)
    return RooflineFigure(name=name, device=kind, scope=SCOPE, roofs=roofs, points=points, not_drawn=not_drawn)


def _why_not(receipt: Receipt) -> str:
    """Why a receipt cannot be drawn; empty where it can."""
    if receipt.verdict is None:
        return f"nothing was timed: {receipt.failures[0].what}"
    if not receipt.achieved:
        return f"no times are reported: {', '.join(receipt.verdict.reasons) or receipt.verdict.verdict}"
    if not all(each.flops and each.flops > 0 for each in receipt.achieved):
        return "the compiler counted no operations"
    if not all(each.least_bytes > 0 for each in receipt.achieved):
        return "operands and results have no bytes"
    copy, product = _ceilings(receipt)
    if not copy:
        return "no copy was measured on the device"
    if not product:
        return f"no matrix product in {receipt.dtype} was measured on the device"
    values = [copy, product, *(value for each in receipt.achieved for value in (_at(each), each.flops_per_s or 0.0))]
    return (
        "" if all(1 / _LARGEST < each < _LARGEST for each in values) else "its figures are too large or small to draw"
    )


def _ceilings(receipt: Receipt) -> tuple[float | None, float | None]:
    return largest_ceiling(receipt.ceilings, COPY), largest_ceiling(receipt.ceilings, PRODUCT, receipt.dtype)


def _points(receipt: Receipt, copy: float, product: float) -> list[RooflinePoint]:
    """Each side, then the ideal of each intensity: one, as both sides count the same operations and bytes."""
    reached = [(each.role, _at(each), each.flops_per_s or 0.0) for each in receipt.achieved]
    for per_byte in dict.fromkeys(per_byte for _, per_byte, _ in reached):
        reached.append((IDEAL, per_byte, attainable_per_s(per_byte, copy, product)))
    return [
        RooflinePoint(
            receipt=receipt_name(receipt),
            label=_label(receipt),
            side=side,
            dtype=receipt.dtype,
            flops_per_byte=per_byte,
            flops_per_s=flops_per_s,
            share_of_ideal=flops_per_s / attainable_per_s(per_byte, copy, product),
            limit=COPY if per_byte < balance(copy, product) else PRODUCT,
        )
        for side, per_byte, flops_per_s in reached
    ]


def _at(each: Achieved) -> float:
    return intensity(each.flops or 0.0, each.least_bytes)


def _add_roof(roofs: list[Roof], receipt: Receipt, copy: float, product: float) -> None:
    """Its ceilings, once for all receipts that have the same."""
    for each in roofs:
        if (each.dtype, each.copy_bytes_per_s, each.product_flops_per_s) == (receipt.dtype, copy, product):
            each.receipts.append(receipt_name(receipt))
            return
    roofs.append(
        Roof(
            dtype=receipt.dtype,
            copy_bytes_per_s=copy,
            product_flops_per_s=product,
            balance_flops_per_byte=balance(copy, product),
            receipts=[receipt_name(receipt)],
        )
    )


def _label(receipt: Receipt) -> str:
    return ", ".join([receipt.part, receipt.dtype, *([choice_text(receipt.mode)] if receipt.mode else [])])


def _free_name(kind: str, taken: set[str]) -> str:
    """ "roofline-tpu-v5-lite": a plain file name, whatever a device is called."""
    slug = re.sub(r"[^a-z0-9]+", "-", kind.lower()).strip("-")[:60] or "device"
    name, number = f"{ROOFLINE}-{slug}", 2
    while name in taken:
        name, number = f"{ROOFLINE}-{slug}-{number}", number + 1
    return name
