"""The decision figure, from observations alone: on a target ratios, intervals and A/A controls; else counts of cells.

A CPU's figure counts results, and says so: there is no time in it.
"""

from __future__ import annotations

from typing import Any

from kernel_audit.decision import counted
from kernel_audit.evidence import Evidence
from kernel_audit.records import Receipt, Record, encode
from kernel_audit.report.figures import drawn, styled

DECISION = "decision"
ON_TARGET = (
    "candidate / baseline on the named device: median of pairs, 99 % interval; below 1 the candidate takes less time"
)
ON_CPU = "counts of results in interpreters on a CPU: correctness, and no time"
_WIDTH = 460


class RatioRow(Record, kw_only=True):
    """A session: the comparison, or its control (the baseline against itself). Seconds are medians and 90th percentiles."""

    label: str
    kind: str
    low: float
    ratio: float
    high: float | None
    verdict: str
    medians_s: list[float]
    p90_s: list[float]
    pairs: int


class CountRow(Record, kw_only=True):
    """Cells of one configuration by outcome."""

    label: str
    outcome: str
    count: int


class DecisionFigure(Record, kw_only=True):
    """The data of the figure: ratios where something counts that ran on a target, counts otherwise."""

    schema: str = "kernel-audit/decision-figure/1"
    scope: str
    ratios: list[RatioRow]
    counts: list[CountRow]


def decision_figure(evidence: Evidence) -> dict[str, bytes]:
    """ "decision.svg", ".png" and ".json". Empty where nothing was observed. The same evidence gives the same bytes."""
    data = decision_data(evidence)
    if not data.ratios and not data.counts:
        return {}
    svg, png = drawn(_ratios(data) if data.ratios else _counts(data))
    return {f"{DECISION}.svg": svg, f"{DECISION}.png": png, f"{DECISION}.json": encode(data)}


def decision_data(evidence: Evidence) -> DecisionFigure:
    """The data of the figure."""
    ratios = [row for each in counted(evidence).valid for row in _rows(each)] if evidence.receipts else []
    if ratios:
        return DecisionFigure(scope=ON_TARGET, ratios=ratios, counts=[])
    found: dict[tuple[str, str], int] = {}
    for cell in evidence.cells:
        label = ", ".join(f"{key}={value}" for key, value in cell.configuration.items()) or "as it is"
        found[label, cell.outcome] = found.get((label, cell.outcome), 0) + 1
    counts = [CountRow(label=label, outcome=outcome, count=count) for (label, outcome), count in sorted(found.items())]
    return DecisionFigure(scope=ON_CPU, ratios=[], counts=counts)


def _rows(receipt: Receipt) -> list[RatioRow]:
    verdict = receipt.verdict
    if verdict is None or verdict.ratio is None or verdict.control is None:
        return []
    common: dict[str, Any] = {
        "label": f"{receipt.part}, {receipt.dtype}, {receipt.target}",
        "verdict": verdict.verdict,
        "medians_s": [each.median_s for each in verdict.sides],
        "p90_s": [each.p90_s for each in verdict.sides],
        "pairs": verdict.pairs,
    }
    return [
        RatioRow(kind=kind, low=each.low, ratio=each.ratio, high=each.high, **common)
        for kind, each in (("candidate / baseline", verdict.ratio), ("A/A control", verdict.control))
    ]


def _ratios(data: DecisionFigure) -> dict[str, Any]:
    import altair as alt

    rows = [
        {"label": each.label, "kind": each.kind, "low": each.low, "ratio": each.ratio, "high": each.high or each.ratio}
        for each in data.ratios
    ]
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("label:N", title=None, axis=alt.Axis(labelLimit=260)),
        yOffset=alt.YOffset("kind:N"),
        color=alt.Color("kind:N", title=None, scale=alt.Scale(range=["#5b9a6f", "#3b6ea8"])),
    )
    scale = alt.Scale(zero=False)
    bars = base.mark_rule(strokeWidth=3).encode(x=alt.X("low:Q", title="ratio", scale=scale), x2="high:Q")
    points = base.mark_point(filled=True, size=50, opacity=1).encode(x=alt.X("ratio:Q", scale=scale))
    one = alt.Chart(alt.Data(values=[{"one": 1}])).mark_rule(strokeDash=[4, 3]).encode(x=alt.X("one:Q", scale=scale))
    return _titled(alt.layer(one, bars, points), "What the device showed", data.scope)


def _counts(data: DecisionFigure) -> dict[str, Any]:
    import altair as alt

    rows = [{"label": each.label, "outcome": each.outcome, "count": each.count} for each in data.counts]
    bars = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar(opacity=1)
        .encode(
            y=alt.Y("label:N", title=None, axis=alt.Axis(labelLimit=260)),
            x=alt.X("count:Q", title="cells", axis=alt.Axis(tickMinStep=1)),
            color=alt.Color("outcome:N", title=None),
        )
    )
    return _titled(bars, "What was shown of correctness", data.scope)


def _titled(chart: Any, title: str, scope: str) -> dict[str, Any]:
    import altair as alt

    titled = chart.properties(width=_WIDTH, height=alt.Step(18), title=alt.Title(text=title, subtitle=[scope]))
    return styled(titled).to_dict()
