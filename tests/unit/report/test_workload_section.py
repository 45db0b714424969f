"""The complete step in page, text and figures."""

from __future__ import annotations

import json
from html import unescape

import workload_sample
from sample_evidence import agreeing

from kernel_audit.decision import decide
from kernel_audit.report import full_text, render_page, workload_figures
from kernel_audit.report.partition_drawing import partition_svg, partition_texts
from kernel_audit.report.svg import embedded

EVIDENCE = workload_sample.with_workload(agreeing().evidence, workload_sample.record())


def test_text_and_page_show_errors_exhibit_and_drawing():
    decision = decide(EVIDENCE)
    figures = workload_figures(EVIDENCE)
    text = " ".join(full_text(EVIDENCE, decision).split())
    page = unescape(render_page(EVIDENCE, decision, figures).decode())
    for shown in ("4 of 4 right", "off by 11.0% (loss) and 20.0% (gradient): unweighted-means", "260 bytes put in"):
        assert shown in text and shown in page
    assert "2 processes of 4 devices" in page and "check_vma=True" in page
    assert page.count("<svg") == 2 and "<img" not in page


def test_without_a_workload_there_is_no_section():
    evidence = agreeing().evidence
    assert "The complete step" not in full_text(evidence, decide(evidence))
    assert workload_figures(evidence) == {}


def test_figures_come_with_their_data_and_are_the_same_again():
    figures = workload_figures(EVIDENCE)
    assert set(figures) == {
        f"{name}.{kind}" for name in ("partition", "aggregation") for kind in ("svg", "png", "json")
    }
    assert figures == workload_figures(EVIDENCE)
    assert json.loads(figures["aggregation.json"])[0]["counts"] == [3, 5]
    assert figures["partition.png"].startswith(b"\x89PNG")


def test_the_drawing_has_a_box_a_device_and_is_harmless():
    svg = partition_svg(workload_sample.PARTITION, workload_sample.run()).decode()
    assert svg.count("<rect") == 2 + 2 + 2  # two of X, each with its part that holds examples; two of w
    assert embedded(svg.encode(), "").startswith("<svg")


def test_the_drawing_in_characters():
    lines = partition_texts(workload_sample.PARTITION, workload_sample.run())
    assert lines[0] == "data=2/3+5: 8 examples over data=2, 5 rows a device, as drawn"
    assert lines[2].split() == ["examples", "3", "5"] and lines[3].split() == ["filled", "up", "2", "0"]
    assert "X         float32[10, 64]: split, [5, 64] a device" in lines[4]
    assert lines[6].endswith("260 bytes put in by a device, 260 sent by the ring model; all 2 devices")


def test_names_from_a_record_stay_text():
    operands = [*workload_sample.OPERANDS[:1]]
    run = workload_sample.run(operands=operands, note="<script>", side="<b>x</b>")
    evidence = workload_sample.with_workload(agreeing().evidence, workload_sample.record(run))
    page = render_page(evidence, decide(evidence), workload_figures(evidence)).decode()
    assert "<b>x</b>" not in page and "<script" not in page
