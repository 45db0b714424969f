"""The page: decision first, complete, self-contained, accessible, and deaf to what its records would have it do."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import sample_evidence
from sample_evidence import Sample, replaced

from kernel_audit.report import precision_gap_figure, render_page
from kernel_audit.report.svg import embedded

EVIL = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>'&"
VOID = {"meta", "img", "br", "link", "input", "hr", "col"}
DRAWN = {"tspan", "path", "rect", "line", "circle"}
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="1"><g><text>gap</text></g></svg>'


class Outline(HTMLParser):
    """Tags, attributes and headings of a page; raises where a tag is not closed."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[tuple[int, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append((int(tag[1]), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open and re.fullmatch("h[1-6]", self.open[-1]):
            level, text = self.headings[-1]
            self.headings[-1] = (level, text + data)


def outline(page: bytes) -> Outline:
    found = Outline()
    found.feed(page.decode())
    assert found.open == []
    return found


def page_of(sample: Sample) -> bytes:
    return render_page(sample.evidence, sample.decision, {"precision-gap.svg": SVG}, sample.sources)


@pytest.fixture(scope="module", params=["agreeing", "failing"])
def page(request: pytest.FixtureRequest) -> bytes:
    return page_of(getattr(sample_evidence, request.param)())


def test_the_decision_comes_first(page: bytes) -> None:
    first = outline(page).headings[0]
    assert first in [(1, "Await target evidence"), (1, "Revise the kernel")]
    assert page.index(b"<h1>") < page.index(b'<pre class="command">') < page.index(b"<h2>")


def test_headings_go_down_one_level_at_a_time(page: bytes) -> None:
    levels = [level for level, _ in outline(page).headings]
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_every_part_is_there(page: bytes) -> None:
    titles = [text for level, text in outline(page).headings if level == 2]
    assert titles == [
        "Reasons",
        "What was observed, and what was not",
        "Review",
        "Correctness matrix",
        "Controls",
        "Refusals",
        "Precision gap",
        "Kernels found",
        "Compiled for described devices",
        "Plan",
        "Complexity",
        "Environment",
    ]


def test_nothing_is_loaded_and_nothing_runs(page: bytes) -> None:
    for tag, attributes in outline(page).tags:
        assert tag not in ("script", "link", "iframe", "object", "embed", "base", "form")
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("href", "src"):
            assert (attributes.get(name) or "#").startswith(("#", "data:image/"))
    assert b"default-src 'none'" in page
    assert not re.findall(rb"url\(|@import", page)


def test_tables_name_their_rows_and_columns(page: bytes) -> None:
    tags = outline(page).tags
    assert all("scope" in attributes for tag, attributes in tags if tag == "th")
    regions = [attributes for tag, attributes in tags if tag == "div" and attributes.get("role") == "region"]
    assert len(regions) >= 6 and all(each.get("aria-label") for each in regions)


def test_links_inside_the_page_lead_somewhere(page: bytes) -> None:
    tags = outline(page).tags
    places = {attributes.get("id") for _, attributes in tags}
    assert {str(attributes["href"])[1:] for tag, attributes in tags if tag == "a"} <= places


def test_the_same_records_give_the_same_page() -> None:
    assert page_of(sample_evidence.failing()) == page_of(sample_evidence.failing())


def test_a_cell_that_does_not_agree_is_shown_with_its_first_differences() -> None:
    text = page_of(sample_evidence.failing()).decode()
    for expected in ("0, 128", "-2.5", "ended by signal 11", "A data race was seen.", "wrong side", "values-differ"):
        assert expected in text
    assert "None. Every judged cell agrees" not in text
    assert "None. Every judged cell agrees" in page_of(sample_evidence.agreeing()).decode()


def test_what_was_not_observed_is_said() -> None:
    text = page_of(sample_evidence.agreeing()).decode()
    assert text.count(">not observed<") == 3
    assert "no such device here" in text
    assert "165 programs, more than 64" in text


def test_many_cells_are_folded_away() -> None:
    sample = sample_evidence.failing()
    cells = [replaced(sample.evidence.cells[2], id=f"cell-{index}") for index in range(100)]
    text = page_of(replace(sample, evidence=replace(sample.evidence, cells=cells))).decode()
    assert "60 more cells to look at" in text


def test_source_lines_are_counted_where_the_sources_are_at_hand() -> None:
    sample = sample_evidence.agreeing()
    assert "2 lines of code in 1 file" in page_of(sample).decode()
    assert "not counted" in render_page(sample.evidence, sample.decision, {}).decode()


def test_no_decision_is_said_plainly() -> None:
    sample = sample_evidence.agreeing()
    text = page_of(replace(sample, decision=replaced(sample.decision, decision=None, next_command=""))).decode()
    assert "<h1>No decision</h1>" in text


def test_an_audit_without_a_single_record_still_has_a_page() -> None:
    sample = sample_evidence.agreeing()
    bare = replace(sample.evidence, programs=[], cells=[], controls=[], refusals=[])
    page = render_page(bare, replaced(sample.decision, counts={}, review=[], findings=[], regimes=[], levels={}), {})
    outline(page)
    for expected in (b"No cell was run.", b"No control was run.", b"No kernel was found", b"No rule found anything"):
        assert expected in page


def test_hostile_text_stays_text() -> None:
    sample = sample_evidence.failing(name=EVIL, note=EVIL)
    first = replaced(sample.evidence.cells[2], dtype=EVIL, engine=EVIL, configuration={EVIL: [EVIL]}, code=EVIL)
    evidence = replace(
        sample.evidence,
        cells=[*sample.evidence.cells, replaced(first, id=EVIL, fixture=f"lesson-{EVIL}", outcome=EVIL)],
        controls=[replaced(each, name=EVIL, reason=EVIL, outcome="rejected") for each in sample.evidence.controls],
        refusals=[replaced(each, name=EVIL, message=EVIL, raised=EVIL) for each in sample.evidence.refusals],
        environment=replaced(sample.evidence.environment, not_run=[EVIL], flags={EVIL: EVIL}, command=[EVIL]),
        programs=[
            replaced(each, kernels=[replaced(each.kernels[0], name=EVIL, primitive=EVIL, digest=EVIL)])
            for each in sample.evidence.programs
        ],
    )
    findings = [replaced(each, code=EVIL, text=EVIL, scope=EVIL, records=[EVIL]) for each in sample.decision.findings]
    decision = replaced(sample.decision, decision=EVIL, summary=EVIL, next_command=EVIL, findings=findings)
    page = render_page(evidence, decision, precision_gap_figure(evidence), {"doubling/kernel.py": EVIL.encode()})
    honest = {tag for tag, _ in outline(page_of(sample_evidence.failing())).tags}
    found = outline(page)
    assert {tag for tag, _ in found.tags} - DRAWN <= honest | {"svg", "g", "text"}
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on")]
    assert b"<script" not in page and b"<img" not in page
    assert page.count(b"&lt;script&gt;alert(1)") > 20


def test_a_harmless_drawing_is_part_of_the_page_with_words_for_it() -> None:
    text = embedded(SVG, 'bars "of" <gaps>')
    assert text.startswith("<svg") and 'role="img"' in text and "&lt;gaps" in text and "data:" not in text


@pytest.mark.parametrize(
    "svg",
    [
        b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
        b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
        b'<svg xmlns="http://www.w3.org/2000/svg"><a href="https://example.org">x</a></svg>',
        b'<svg xmlns="http://www.w3.org/2000/svg"><g style="background:url(https://example.org)"/></svg>',
        b'<svg xmlns="http://www.w3.org/2000/svg"><rect fill="url(https://example.org/x)"/></svg>',
        b'<svg xmlns="http://www.w3.org/2000/svg"><foreignObject><p/></foreignObject></svg>',
        b'<!DOCTYPE svg [<!ENTITY a "aa">]><svg xmlns="http://www.w3.org/2000/svg">&a;</svg>',
        b"<svg><not closed",
        b"<g>" * 20_000,
    ],
)
def test_a_drawing_that_could_do_more_becomes_an_image(svg: bytes) -> None:
    text = embedded(svg, 'a "word"')
    assert re.fullmatch(r'<img src="data:image/svg\+xml;base64,[\w+/=]+" alt="a &quot;word&quot;">', text)
