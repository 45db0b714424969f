"""Figures drawn from the records: each as SVG and PNG, with its data as JSON beside it."""

from __future__ import annotations

from typing import Any

from kernel_audit.contract import Audit
from kernel_audit.evidence import Evidence
from kernel_audit.records import Cell, Record, encode
from kernel_audit.report.phrases import dtype_order

PRECISION_GAP = "precision-gap"
SCOPE = "CPU interpretation: values only, no time"
TITLE = "What rounding the inputs and the result costs"
AXIS = "max |difference|, in the unit of the result"

_WIDTH = 460  # CSS pixels; the PNG has twice as many
_BAR_STEP = 15
_PNG_SCALE = 2.0
# Readable on white and on black, and told apart by those who do not see red and green.
_COLOURS = ("#3b6ea8", "#d98b2b", "#5b9a6f", "#a4628f")
_INK = "#333333"


class Gap(Record, kw_only=True):
    """One bar: the largest gap of a fixture at a dtype, whole and by part; None where no element is finite."""

    fixture: str
    dtype: str
    representation_gap_max: float | None
    gap_input_max: float | None
    gap_output_max: float | None


class GapFigure(Record, kw_only=True):
    """The data of the precision-gap figure: what is drawn, for which fixtures, and within which scope."""

    schema: str = "kernel-audit/precision-gap/1"
    title: str
    scope: str
    unit: str
    fixtures: str
    oracle: str
    rows: list[Gap]


def precision_gap_figure(evidence: Evidence) -> dict[str, bytes]:
    """ "precision-gap.svg", ".png" and ".json": max |represented-input oracle - original-data oracle| as bars.

    Of the audit's fixture sequences where it has any, else of the family "normal"; one bar a fixture and dtype. The same
    evidence gives the same bytes. Empty where no cell has a gap.
    """
    data = precision_gaps(evidence)
    if not any(row.representation_gap_max is not None for row in data.rows):
        return {}
    svg, png = drawn(_specification(data))
    return {f"{PRECISION_GAP}.svg": svg, f"{PRECISION_GAP}.png": png, f"{PRECISION_GAP}.json": encode(data)}


def precision_gaps(evidence: Evidence) -> GapFigure:
    """The data of the figure, in the order of the plan's fixtures."""
    audit = evidence.frozen.audit
    cells = [each for each in evidence.cells if _shown(audit, each)]
    fixtures = {each.name: place for place, each in enumerate(evidence.frozen.plan.fixtures)}
    dtypes = dtype_order(evidence)
    keys = sorted(
        {(each.fixture, each.dtype) for each in cells},
        key=lambda key: (fixtures.get(key[0], -1), key[0], dtypes[key[1]]),
    )
    names = ", ".join(each.name for each in audit.sequences)
    return GapFigure(
        title=TITLE,
        scope=SCOPE,
        unit="unit of the result",
        fixtures=f"sequence {names}" if names else "family normal",
        oracle=f"{audit.oracle.kind}, calculating in {audit.precision.oracle}",
        rows=[_row(fixture, dtype, cells) for fixture, dtype in keys],
    )


def _shown(audit: Audit, cell: Cell) -> bool:
    if audit.sequences:
        return any(cell.fixture.startswith(f"{each.name}-") for each in audit.sequences)
    return cell.family == "normal"


def _row(fixture: str, dtype: str, cells: list[Cell]) -> Gap:
    found = [each for each in cells if (each.fixture, each.dtype) == (fixture, dtype)]
    return Gap(
        fixture=fixture,
        dtype=dtype,
        representation_gap_max=_largest([each.representation_gap_max for each in found]),
        gap_input_max=_largest([each.gap_input_max for each in found]),
        gap_output_max=_largest([each.gap_output_max for each in found]),
    )


def _largest(values: list[float | None]) -> float | None:
    return max((each for each in values if each is not None), default=None)


def drawn(spec: dict[str, Any]) -> tuple[bytes, bytes]:
    """(SVG, PNG) of a Vega-Lite specification."""
    import vl_convert

    version = _vega_lite_version(spec)
    svg = vl_convert.vegalite_to_svg(spec, vl_version=version)
    png = vl_convert.vegalite_to_png(spec, vl_version=version, scale=_PNG_SCALE)
    return svg.encode() + b"\n", png


def _vega_lite_version(spec: dict[str, Any]) -> str:
    """ "6.1" out of ".../schema/vega-lite/v6.1.0.json": the version that altair wrote for."""
    text = str(spec["$schema"]).rpartition("/v")[2].removesuffix(".json")
    return ".".join(text.split(".")[:2])


def _specification(data: GapFigure) -> dict[str, Any]:
    """Horizontal bars grouped by dtype, each with its value written at its end: a zero is seen to be one."""
    import altair as alt

    fixtures = list(dict.fromkeys(row.fixture for row in data.rows))
    dtypes = list(dict.fromkeys(row.dtype for row in data.rows))
    rows = [
        {"fixture": row.fixture, "dtype": row.dtype, "gap": row.representation_gap_max, "label": _label(row)}
        for row in data.rows
    ]
    top = max((row["gap"] or 0.0 for row in rows), default=0.0) or 1.0
    scale = alt.Scale(domain=[0, top * 1.18], nice=False)  # room for the labels at the ends of the bars
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=alt.Y("fixture:N", sort=fixtures, title="fixture", axis=alt.Axis(labelLimit=220, titlePadding=24)),
        yOffset=alt.YOffset("dtype:N", sort=dtypes, scale=alt.Scale(paddingInner=0.15)),
    )
    value = alt.X("gap:Q", title=AXIS, scale=scale, axis=alt.Axis(tickCount=5, format="~g"))
    colour = alt.Color(
        "dtype:N", sort=dtypes, title="dtype", scale=alt.Scale(domain=dtypes, range=_colours(len(dtypes)))
    )
    bars = base.mark_bar(opacity=1).encode(x=value, color=colour)
    ends = base.mark_tick(thickness=2, opacity=1, orient="vertical").encode(x=value, color=colour)
    labels = base.mark_text(align="left", dx=5, fontSize=11, color=_INK).encode(
        x=alt.X("drawn:Q", scale=scale), text="label:N"
    )
    labels = labels.transform_calculate(drawn="datum.gap === null ? 0 : datum.gap")
    chart = alt.layer(bars, ends, labels).properties(
        width=_WIDTH,
        height=alt.Step(_BAR_STEP),
        title=alt.Title(text=data.title, subtitle=[data.scope, f"fixtures: {data.fixtures}; oracle: {data.oracle}"]),
    )
    return styled(chart).to_dict()


def _colours(count: int) -> list[str]:
    return [_COLOURS[place % len(_COLOURS)] for place in range(count)]


def _label(row: Gap) -> str:
    return "no finite element" if row.representation_gap_max is None else f"{row.representation_gap_max:.3g}"


def styled(chart: Any) -> Any:
    """A chart in the style of all figures."""
    return (
        chart.configure(background="transparent", font="sans-serif")
        .configure_view(stroke=None)
        .configure_axis(labelColor=_INK, titleColor=_INK, titleFontWeight="normal", gridOpacity=0.4, labelFontSize=11)
        .configure_axisY(grid=False, domain=True, ticks=False, labelPadding=6)
        .configure_title(anchor="start", color=_INK, subtitleColor=_INK, subtitlePadding=4, offset=12)
        .configure_legend(
            orient="top",
            offset=8,
            symbolType="square",
            symbolOpacity=1,
            labelColor=_INK,
            titleColor=_INK,
            titleFontWeight="normal",
        )
    )
