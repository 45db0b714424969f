"""The roofline: points and ceilings from receipts that count, the same bytes each time, and nothing invented."""

from __future__ import annotations

import copy
from dataclasses import replace

import msgspec
import pytest
import sample_receipts
from sample_evidence import replaced
from sample_receipts import DTYPES, changed, failed, measured
from sample_target_codes import with_wrong_results

from kernel_audit.decision import decide
from kernel_audit.evidence import Evidence
from kernel_audit.records import digest_of, encode
from kernel_audit.report import all_figures, full_text, render_page, roofline_figures
from kernel_audit.report.roofline import RooflineFigure, rooflines
from kernel_audit.statistics import session_verdict

NAME = "roofline-tpu-v5-lite"
FLOPS = 81920.0  # 20 operations per byte
COUNTED = measured(flops=FLOPS, products=DTYPES)


@pytest.fixture(scope="module")
def drawn() -> dict[str, bytes]:
    return roofline_figures(COUNTED)


def only(evidence: Evidence) -> RooflineFigure:
    (data,) = rooflines(evidence)
    return data


def of_device(evidence: Evidence, kind: str, target: str, places: tuple[int, ...]) -> Evidence:
    """Some receipts, their sessions with them, of another device."""

    def moved(receipt):
        def there(session):
            return replaced(session, scope=replaced(session.scope, device_kind=kind))

        session, device = there(receipt.session), replaced(receipt.device, kind=kind)
        pilots = [there(each) for each in receipt.pilots]
        verdict = session_verdict(session)
        return replaced(receipt, target=target, device=device, session=session, pilots=pilots, verdict=verdict)

    found = [moved(each) if place in places else each for place, each in enumerate(evidence.receipts)]
    return replace(evidence, receipts=found)


def test_there_are_a_drawing_a_picture_and_the_data(drawn: dict[str, bytes]):
    assert list(drawn) == [f"{NAME}.svg", f"{NAME}.png", f"{NAME}.json"]
    assert drawn[f"{NAME}.svg"].startswith(b"<svg") and drawn[f"{NAME}.png"].startswith(b"\x89PNG")
    data = msgspec.json.decode(drawn[f"{NAME}.json"], type=RooflineFigure)
    assert encode(data) == drawn[f"{NAME}.json"] and data == only(COUNTED)


def test_the_same_evidence_gives_the_same_bytes(drawn: dict[str, bytes]):
    assert roofline_figures(copy.deepcopy(COUNTED)) == drawn


def test_points_are_operations_over_the_median_at_their_intensity():
    data = only(COUNTED)
    assert [each.side for each in data.points] == ["candidate", "baseline", "ideal"] * 4
    least = {each.dtype: each.achieved[0].least_bytes for each in COUNTED.receipts}
    assert {each.dtype: each.flops_per_byte for each in data.points} == {
        key: FLOPS / size for key, size in least.items()
    }
    first, receipt = data.points[:3], COUNTED.receipts[0]
    assert [each.flops_per_s for each in first[:2]] == [FLOPS / each.median_s for each in receipt.verdict.sides]
    assert first[0].share_of_ideal == first[0].flops_per_s / first[2].flops_per_s
    assert data.not_drawn == []


def test_the_ideal_is_the_lower_of_the_measured_ceilings():
    slope = 1e6 / 1.1e-3  # bytes a second of the sample's copy
    least = {each.dtype: each.achieved[0].least_bytes for each in COUNTED.receipts}
    for flops, limit in ((FLOPS, "copy"), (FLOPS * 1000.0, "matrix-product")):
        data = only(measured(flops=flops, products=DTYPES))
        ideal = {each.dtype: each for each in data.points if each.side == "ideal"}
        roofs = {each.dtype: each.product_flops_per_s for each in data.roofs}
        assert set(roofs) == set(DTYPES)
        for dtype in DTYPES:
            assert ideal[dtype].flops_per_s == pytest.approx(min(slope * flops / least[dtype], roofs[dtype]))
            assert (ideal[dtype].limit, ideal[dtype].share_of_ideal) == (limit, 1.0)


def test_a_loss_lies_below_its_baseline():
    points = {each.side: each for each in only(measured(flops=FLOPS, products=DTYPES, ratio=1.3)).points[:3]}
    assert points["candidate"].flops_per_s < points["baseline"].flops_per_s < points["ideal"].flops_per_s


def test_the_drawing_names_device_sides_comparisons_and_ceilings(drawn: dict[str, bytes]):
    text = drawn[f"{NAME}.svg"].decode()
    for expected in (
        "Roofline of TPU v5 lite",
        "operations per byte of operands and results",
        "operations a second",
        "measured: copy 9.09e+08 bytes/s, float32 product 9.09e+10 operations/s",
        "bfloat16 products",
        "program, float32",
        "step, bfloat16",
        ">candidate<",
        ">baseline<",
        ">ideal<",
    ):
        assert expected in text, expected


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"products": DTYPES}, "the compiler counted no operations"),
        ({"flops": FLOPS}, "no matrix product in float32 was measured on the device"),
        ({"flops": 1e300, "products": DTYPES}, "its figures are too large or small to draw"),
    ],
)
def test_what_is_not_known_is_said_and_not_drawn(changes: dict, why: str):
    evidence = measured(**changes)
    data = only(evidence)
    assert data.points == [] and data.roofs == [] and len(data.not_drawn) == 4
    assert data.not_drawn[0].why == why
    assert list(roofline_figures(evidence)) == [f"{NAME}.json"]
    assert f"not on the roofline of TPU v5 lite: program, float32: {why}" in " ".join(
        full_text(evidence, decide(evidence)).split()
    )


def test_without_a_copy_nothing_is_drawn():
    receipt = COUNTED.receipts[0]
    products = [each for each in receipt.ceilings if each.kind != "copy"]
    achieved = [replaced(each, share_of_copy=None) for each in receipt.achieved]
    data = only(changed(COUNTED, ceilings=products, achieved=achieved))
    assert [each.why for each in data.not_drawn] == ["no copy was measured on the device"]
    assert len(data.points) == 9


def test_a_dtype_without_its_product_borrows_no_other_one():
    data = only(measured(flops=FLOPS, products=("bfloat16",)))
    assert {each.dtype for each in data.points} == {"bfloat16"}
    assert {each.why for each in data.not_drawn} == {"no matrix product in float32 was measured on the device"}


def test_failures_and_refused_sessions_are_named():
    data = only(failed(COUNTED, 0, "candidate"))
    assert [each.why for each in data.not_drawn] == ["nothing was timed: the results differ"]
    refused = replaced(COUNTED.receipts[0].session, processes=with_wrong_results("candidate"))
    evidence = changed(COUNTED, session=refused, verdict=session_verdict(refused), achieved=[])
    assert [each.why for each in only(evidence).not_drawn] == ["no times are reported: timed-output-differs"]


def test_ignored_receipts_are_not_drawn():
    stale = replaced(COUNTED.receipts[0], sources={"doubling/kernel.py": digest_of("older")})
    data = only(replace(COUNTED, receipts=[stale, *COUNTED.receipts[1:]]))
    assert len(data.points) == 9 and "program, float32" not in {each.label for each in data.points}
    altered = changed(COUNTED, achieved=[replaced(each, flops=1e12) for each in COUNTED.receipts[0].achieved])
    assert len(only(altered).points) == 9


def test_nothing_is_drawn_where_nothing_counts():
    stale = [replaced(each, contract=digest_of("older")) for each in COUNTED.receipts]
    assert roofline_figures(replace(COUNTED, receipts=stale)) == {}
    assert roofline_figures(sample_receipts.evidence()) == {}


def test_each_device_kind_has_its_own_figure():
    base = measured(audit={"targets": ["tpu:v5e", "tpu:v6e"]}, flops=FLOPS, products=DTYPES)
    figures = rooflines(of_device(base, "TPU v6 lite", "tpu:v6e", (1, 3)))
    assert [(each.name, each.device) for each in figures] == [
        (NAME, "TPU v5 lite"),
        ("roofline-tpu-v6-lite", "TPU v6 lite"),
    ]
    assert [{each.dtype for each in data.points} for data in figures] == [{"float32"}, {"bfloat16"}]


def test_kinds_that_are_spelled_alike_or_evil_have_plain_names_of_their_own():
    targets = ["tpu:a", "tpu:b", "tpu:c"]
    base = measured(audit={"targets": targets}, flops=FLOPS, products=DTYPES)
    for place, kind in enumerate(["../<script>", "script", "///"]):
        base = of_device(base, kind, targets[place], (place,))
    assert [each.name for each in rooflines(base)] == ["roofline-script", "roofline-script-2", "roofline-device"]
    page = render_page(base, decide(base), roofline_figures(base)).decode()
    assert "<script" not in page and "Roofline of ../&lt;script&gt;" in page


def test_other_ceilings_of_a_later_measurement_are_a_roof_of_their_own():
    assert [each.dtype for each in only(COUNTED).roofs] == ["float32", "bfloat16"]
    receipt = COUNTED.receipts[1]
    faster = [replaced(each, samples_s=[0.5e-3], per_s=each.work / 0.5e-3) for each in receipt.ceilings]
    copy_s, product_s = faster[0].per_s, faster[-1].per_s
    achieved = [
        replaced(each, share_of_copy=each.bytes_per_s / copy_s, share_of_product=each.flops_per_s / product_s)
        for each in receipt.achieved
    ]
    data = only(changed(COUNTED, 1, ceilings=faster, achieved=achieved))
    assert [each.dtype for each in data.roofs] == ["float32", "bfloat16", "bfloat16"]


def test_the_page_shows_it_with_words_for_it_and_what_it_rests_on():
    page = render_page(COUNTED, decide(COUNTED), all_figures(COUNTED)).decode()
    assert "<h3>Roofline of TPU v5 lite</h3>" in page
    assert "program, float32, ideal: 8.02e+09 operations/s at 8.82 per byte, limited by the copy" in page
    assert "Floors are of operands and results of the contract, each once" in page
    assert "Ceilings were measured first on that device" in page
    assert f"figures/{NAME}.json" in page and "Not drawn" not in page
    assert "<figure>" not in _section(render_page(COUNTED, decide(COUNTED), {}).decode())


def _section(page: str) -> str:
    return page.partition('<section id="receipts">')[2].partition("</section>")[0]
