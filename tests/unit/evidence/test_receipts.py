"""What a receipt says against its own samples is found, field by field; and a bundle keeps and re-reads its receipts."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import msgspec
import pytest
import sample_evidence
import sample_receipts
from sample_evidence import replaced

from kernel_audit.decision import decide, verify
from kernel_audit.errors import BundleError
from kernel_audit.evidence import contradictions, read_bundle, read_receipts, schema_files, write_bundle
from kernel_audit.records import PairColumns, Session, encode, receipt_name
from kernel_audit.statistics import achieved, session_verdict

AUDIT = sample_receipts.evidence().frozen.audit
GOOD = sample_receipts.receipt(AUDIT)

ALTERED = {
    "a sample": lambda: {"session": with_columns(left_s=lambda each: [each[0] * 1.1, *each[1:]])},
    "a voided pair": lambda: {"session": with_columns(voided=lambda each: ["throttled", *each[1:]])},
    "an order": lambda: {"session": with_columns(order=lambda each: [1 - each[0], *each[1:]])},
    "the verdict": lambda: {"verdict": replaced(GOOD.verdict, verdict="slower")},
    "an interval": lambda: {"verdict": replaced(GOOD.verdict, ratio=replaced(GOOD.verdict.ratio, low=0.5))},
    "a share": lambda: {"achieved": [replaced(each, share_of_copy=0.99) for each in GOOD.achieved]},
    "a ceiling": lambda: {"ceilings": [replaced(each, per_s=each.per_s * 2) for each in GOOD.ceilings]},
    "a peak": lambda: {"memory": [replaced(each, peak_bytes=1) for each in GOOD.memory]},
    "the device": lambda: {"device": replaced(GOOD.device, kind="TPU v6 lite")},
    "the boundary": lambda: {"boundary": "the kernel alone"},
    "JAX": lambda: {"versions": {"jax": "0.12.0"}},
    "a program": lambda: {"programs": [replaced(each, program="sha256:0") for each in GOOD.programs]},
    "the choice": lambda: {"choices": [replaced(each, chosen="another") for each in GOOD.choices]},
    "its number": lambda: {"number": 5},
    "its checks": lambda: {"checks": []},
    "the checks of the candidate": lambda: {"checks": [each for each in GOOD.checks if each.role != "candidate"]},
    "checks of another baseline only": lambda: {
        "checks": [replaced(each, name="another") if each.role == "baseline" else each for each in GOOD.checks]
    },
    "checks of nothing": lambda: {"checks": [replaced(each, elements=0) for each in GOOD.checks]},
    "a wrong result that is no failure": lambda: {"checks": [replaced(each, differing=1) for each in GOOD.checks]},
    "a plan that judges no timed call": lambda: with_plan(check_every=0),
    "a plan without fresh operands": lambda: with_plan(fresh_every=0),
    "an order, and the verdict with it": lambda: made_again(with_columns(order=lambda each: [1 - each[0], *each[1:]])),
    "operands": lambda: made_again(with_columns(inputs=lambda each: [1 - abs(one) for one in each])),
    "its pairs": lambda: made_again(first_pairs(6)),
    "its processes": lambda: made_again(replaced(GOOD.session, processes=GOOD.session.processes[:-1])),
    "a process twice": lambda: made_again(
        replaced(GOOD.session, processes=[GOOD.session.processes[0], *GOOD.session.processes[:-1]])
    ),
    "the seed of a process": lambda: made_again(with_first(seed=1)),
    "fewer results judged": lambda: made_again(
        with_first(checks=[replaced(each, checked=1) for each in GOOD.session.processes[0].checks])
    ),
    "the number of planned pairs": lambda: with_plan(pairs=104),
    "a pair voided for no reason of a session": lambda: made_again(
        with_columns(voided=lambda each: ["slow", *each[1:]])
    ),
    "its margin": lambda: with_plan(margin=0.03),
    "the margin that it was judged at": lambda: {"verdict": session_verdict(GOOD.session, margin=0.04)},
    "a floor": lambda: made_again(
        replaced(GOOD.session, sides=[replaced(each, floor_s=1e-6) for each in GOOD.session.sides])
    ),
    "its bytes": lambda: {
        "achieved": achieved(GOOD.verdict, least_bytes=1 << 30, flops=None, dtype=GOOD.dtype, ceilings=GOOD.ceilings)
    },
    "no choice": lambda: {"choices": []},
    "no choice of the baseline": lambda: {"choices": GOOD.choices[:1]},
    "no pilots": lambda: {"choices": [replaced(each, pilots=[]) for each in GOOD.choices], "pilots": []},
    "a pilot left out": lambda: {"choices": [with_pilots(GOOD.choices[0].pilots[:1]), GOOD.choices[1]]},
    "a ratio without samples": lambda: {
        "choices": [with_pilots([replaced(each, session="") for each in GOOD.choices[0].pilots]), GOOD.choices[1]]
    },
    "a pilot of another program": lambda: {
        "choices": [
            with_pilots([replaced(each, name=f"{each.name}'") for each in GOOD.choices[0].pilots]),
            GOOD.choices[1],
        ]
    },
    "baselines that no pilot ran": lambda: {"baselines": ["fused", "plain"]},
    "its kind": lambda: {"kind": "failure"},
}


def with_columns(**change: object):
    first, *rest = GOOD.session.processes
    columns = {name: made(getattr(first.comparison, name)) for name, made in change.items()}
    return replaced(GOOD.session, processes=[replaced(first, comparison=replaced(first.comparison, **columns)), *rest])


def with_plan(**changes: object):
    """The session under another plan, its verdict made again."""
    return made_again(replaced(GOOD.session, plan=replaced(GOOD.session.plan, **changes)))


def with_first(**changes: object):
    first, *rest = GOOD.session.processes
    return replaced(GOOD.session, processes=[replaced(first, **changes), *rest])


def first_pairs(count: int):
    """As if it had been stopped early, with every figure made again."""

    def cut(columns: PairColumns) -> PairColumns:
        return replaced(columns, **{name: getattr(columns, name)[:count] for name in columns.__struct_fields__})

    processes = [replaced(each, comparison=cut(each.comparison)) for each in GOOD.session.processes]
    return replaced(GOOD.session, processes=processes)


def with_pilots(pilots: list):
    return replaced(GOOD.choices[0], pilots=pilots)


def made_again(session: Session):
    """A session with the verdict and the shares that it gives: no statistic of it is wrong."""
    verdict = session_verdict(session)
    least = GOOD.achieved[0].least_bytes
    shares = achieved(verdict, least_bytes=least, flops=None, dtype=GOOD.dtype, ceilings=GOOD.ceilings)
    return {"session": session, "verdict": verdict, "achieved": shares}


def test_a_receipt_as_it_was_written_contradicts_nothing():
    assert contradictions(GOOD, AUDIT) == []


@pytest.mark.parametrize("what", ALTERED)
def test_whatever_is_altered_is_found(what: str):
    assert contradictions(replaced(GOOD, **ALTERED[what]()), AUDIT)


@pytest.mark.parametrize("name", ["receipt", "session", "timing-verdict"])
def test_the_published_schema_accepts_what_is_written(name: str):
    schema = msgspec.json.decode(schema_files()[f"{name}.json"])
    record = {"receipt": GOOD, "session": GOOD.session, "timing-verdict": GOOD.verdict}[name]
    jsonschema.validate(msgspec.json.decode(encode(record)), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**msgspec.json.decode(encode(record)), "more": 1}, schema)


def bundle(evidence, place: Path) -> Path:
    write_bundle(evidence, decide(evidence), sample_evidence.SOURCES, {}, b"page", place)
    return place


def test_a_bundle_keeps_its_receipts(tmp_path: Path):
    evidence = sample_receipts.measured()
    place = bundle(evidence, tmp_path / "bundle")
    again, decision = read_bundle(place)
    assert sorted(map(receipt_name, again.receipts)) == sorted(map(receipt_name, evidence.receipts))
    assert decision.decision == "keep" and verify(place) == []


def test_verify_recomputes_and_names_the_receipt(tmp_path: Path):
    """An altered receipt that the decision names carries nothing; one that it does not name is a fault."""
    evidence = sample_receipts.changed(sample_receipts.measured(), **ALTERED["a sample"]())
    assert verify(bundle(evidence, tmp_path / "told")) == []
    silent = decide(sample_receipts.measured())
    write_bundle(evidence, silent, sample_evidence.SOURCES, {}, b"page", tmp_path / "silent")
    faults = verify(tmp_path / "silent")
    assert any(each.file.startswith("receipts/") and "its samples give" in each.text for each in faults)
    assert any(each.file == "decision.json" for each in faults)


def test_a_folder_of_receipts(tmp_path: Path):
    with pytest.raises(BundleError, match="cannot be read"):
        read_receipts(tmp_path / "nowhere")
    with pytest.raises(BundleError, match="no receipts"):
        read_receipts(tmp_path)
    (tmp_path / "one.json").write_bytes(encode(GOOD))
    (tmp_path / "twin.json").write_bytes(encode(GOOD))
    assert read_receipts(tmp_path) == [GOOD]
    (tmp_path / "cut.json").write_bytes(encode(GOOD)[:-3])
    with pytest.raises(BundleError, match="corrupt evidence"):
        read_receipts(tmp_path)


def test_a_receipt_left_out_is_missed():
    evidence = sample_receipts.measured()
    assert decide(replace(evidence, receipts=evidence.receipts[:-1])).decision == "await-target-evidence"


@pytest.mark.parametrize("evil", ["../../../../pwn", "/etc/x", "a" * 400, "..", "as declared", "T=float32,U=int8"])
def test_a_name_of_a_receipt_leads_nowhere(evil: str):
    name = receipt_name(replaced(GOOD, dtype=evil, target=f"tpu:{evil}"))
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,73}", name) and name.startswith("tpu-")
