"""The roofline drawn: log-log, ceilings dashed, the ideal line whole, both sides and the ideal of each comparison as points."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from kernel_audit.report.figures import styled
from kernel_audit.statistics import attainable_per_s

if TYPE_CHECKING:
    from kernel_audit.report.roofline import Roof, RooflineFigure

_WIDTH, _HEIGHT = 460, 300  # CSS pixels
_SIDES = ["candidate", "baseline", "ideal"]
_COLOURS = ["#3b6ea8", "#d98b2b", "#5b9a6f"]
_INK = "#333333"
_LINE = "#7a7f87"
_TITLE_LENGTH = 60


def roofline_chart(data: RooflineFigure) -> dict[str, Any]:
    """The Vega-Lite specification. `data` has a point at least."""
    import altair as alt

    across = _decades(
        [each.flops_per_byte for each in data.points] + [each.balance_flops_per_byte for each in data.roofs]
    )
    up = _decades([each.flops_per_s for each in data.points] + [each.product_flops_per_s for each in data.roofs])
    x = alt.X("x:Q", title="operations per byte of operands and results", scale=_log(across), axis=_axis(across))
    y = alt.Y("y:Q", title="operations a second", scale=_log(up), axis=_axis(up))
    layers = [_line(_ideal(each, across, up), x, y, 2.2, []) for each in data.roofs]
    layers += [_line(ends, x, y, 1.2, [4, 3]) for each in data.roofs for ends in _ceilings(each, across, up)]
    chart = alt.layer(*layers, _names(data.roofs, across, x, y), _points(data, x, y)).properties(
        width=_WIDTH,
        height=_HEIGHT,
        title=alt.Title(
            text=f"Roofline of {data.device[:_TITLE_LENGTH]}", subtitle=[_text(each) for each in data.roofs]
        ),
    )
    return styled(chart).configure_legend(orient="bottom", columns=3, labelColor=_INK, titleColor=_INK).to_dict()


def _points(data: RooflineFigure, x: Any, y: Any) -> Any:
    import altair as alt

    rows = [
        {"x": each.flops_per_byte, "y": each.flops_per_s, "side": each.side, "what": each.label} for each in data.points
    ]
    labels = list(dict.fromkeys(each.label for each in data.points))
    colour = alt.Color("side:N", title=None, sort=_SIDES, scale=alt.Scale(domain=_SIDES, range=_COLOURS))
    shape = alt.Shape("what:N", title=None, sort=labels)
    marks = alt.Chart(alt.Data(values=rows)).mark_point(filled=False, size=70, opacity=1, strokeWidth=2)
    return marks.encode(x=x, y=y, color=colour, shape=shape)


def _line(ends: list[tuple[float, float]], x: Any, y: Any, width: float, dash: list[int]) -> Any:
    import altair as alt

    rows = [{"x": across, "y": up} for across, up in ends]
    marks = alt.Chart(alt.Data(values=rows)).mark_line(color=_LINE, strokeWidth=width, strokeDash=dash)
    return marks.encode(x=x, y=y)


def _names(roofs: list[Roof], across: tuple[float, float], x: Any, y: Any) -> Any:
    """The dtype of each flat roof, at its left end, where no slope passes."""
    import altair as alt

    rows = [{"x": across[0], "y": each.product_flops_per_s, "name": f"{each.dtype} products"} for each in roofs]
    marks = alt.Chart(alt.Data(values=rows)).mark_text(align="left", dx=4, dy=-6, fontSize=11, color=_INK)
    return marks.encode(x=x, y=y, text="name:N")


def _ideal(roof: Roof, across: tuple[float, float], up: tuple[float, float]) -> list[tuple[float, float]]:
    """min(copy * intensity, product) from the left end, or where it enters from below, over the corner to the right end."""
    copy, product = roof.copy_bytes_per_s, roof.product_flops_per_s
    places = (max(across[0], up[0] / copy), roof.balance_flops_per_byte, across[1])
    return [(each, attainable_per_s(each, copy, product)) for each in places]


def _ceilings(roof: Roof, across: tuple[float, float], up: tuple[float, float]) -> list[list[tuple[float, float]]]:
    """Slope and flat roof, each from end to end of the plane."""
    copy, product = roof.copy_bytes_per_s, roof.product_flops_per_s
    slope = (max(across[0], up[0] / copy), min(across[1], up[1] / copy))
    return [[(each, copy * each) for each in slope], [(each, product) for each in across]]


def _decades(values: list[float]) -> tuple[float, float]:
    """Whole powers of ten around the values, with some room."""
    low, high = (math.log10(each) for each in (min(values) / 1.5, max(values) * 1.5))
    return 10.0 ** math.floor(low), 10.0 ** math.ceil(high)


def _log(ends: tuple[float, float]) -> Any:
    import altair as alt

    return alt.Scale(type="log", domain=list(ends), nice=False)


def _axis(ends: tuple[float, float]) -> Any:
    """A tick each power of ten, every second or third where there are many."""
    import altair as alt

    low, high = (round(math.log10(each)) for each in ends)
    step = 1 + (high - low) // 8
    return alt.Axis(
        values=[10.0**power for power in range(low, high + 1, step)], format="~e", grid=True, titlePadding=16
    )


def _text(roof: Roof) -> str:
    copy, product = f"{roof.copy_bytes_per_s:.3g}", f"{roof.product_flops_per_s:.3g}"
    return f"measured: copy {copy} bytes/s, {roof.dtype} product {product} operations/s"
