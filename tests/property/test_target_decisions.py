"""Decisions over generated evidence of a target: what may never come out, whatever went in."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sample_receipts
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_evidence import replaced
from sample_receipts import failed, measured, worth

from kernel_audit.decision import counted, decide, reasons
from kernel_audit.evidence import Evidence
from kernel_audit.records import AWAIT, BASELINE, KEEP, PROGRAM, REVISE, STEP

RATIOS = (0.7, 0.9, 0.95, 1.0, 1.1)
# From worst to best for the kernel. No decision at all is no claim about it.
ORDER = {REVISE: 0, BASELINE: 1, AWAIT: 2, None: 2, KEEP: 3}
RECORDS = ("cells", "controls", "refusals", "programs", "kernels", "receipts")
FEW = settings(max_examples=10, deadline=None)


@st.composite
def cases(draw: st.DrawFn) -> Evidence:
    """Evidence of a whole measurement: any ratio alone and in the step, memory, failures, faults of cells and controls."""
    objective = draw(st.sampled_from(["step-time", "examples-per-second", "peak-bytes"]))
    asked = worth(
        objective=objective,
        margin=draw(st.sampled_from([0.02, 0.2])),
        not_to_lose=draw(st.sampled_from([{}, {"peak-bytes": 0.1}, {"step-time": 0.05}])),
        break_even=draw(st.sampled_from([None, 10, 10**7])),
    )
    made = measured(
        audit={"worth": asked},
        ratio=draw(st.sampled_from(RATIOS)),
        step={
            "ratio": draw(st.sampled_from(RATIOS)),
            "control": draw(st.sampled_from([1.0, 1.0, 1.2])),
            "peak": draw(st.sampled_from([(500, 1000), (1000, 1000), (2000, 1000)])),
        },
    )
    if draw(st.integers(0, 4)) == 0:
        made = failed(
            made,
            draw(st.integers(0, 3)),
            *draw(st.sampled_from([("candidate",), ("baseline",), ("candidate", "baseline")])),
        )
    if draw(st.integers(0, 4)) == 0:
        made = _with(made, "cells", draw(st.integers(0, 3)), outcome="differs", code="values-differ")
    if draw(st.integers(0, 5)) == 0:
        made = _with(made, "controls", draw(st.integers(0, 3)), outcome="not-applicable", reason="no difference")
    return made


def _with(evidence: Evidence, name: str, place: int, **changes: object) -> Evidence:
    records = [
        replaced(each, **changes) if index == place else each for index, each in enumerate(getattr(evidence, name))
    ]
    return replace(evidence, **{name: records})


def _without(evidence: Evidence, name: str, place: int) -> Evidence:
    return replace(evidence, **{name: [each for index, each in enumerate(getattr(evidence, name)) if index != place]})


@FEW
@given(cases())
def test_nothing_is_kept_without_what_ran_alone_and_in_the_step(evidence: Evidence):
    if decide(evidence).decision == KEEP:
        parts = {(each.part, each.dtype) for each in counted(evidence).valid if each.verdict is not None}
        assert parts == {(part, dtype) for part in (PROGRAM, STEP) for dtype in sample_receipts.DTYPES}
    for part in (PROGRAM, STEP):
        kept = [replaced(each, number=1, of=1, run=each.dtype) for each in evidence.receipts if each.part != part]
        assert decide(replace(evidence, receipts=kept)).decision != KEEP


@FEW
@given(cases(), st.data())
def test_less_evidence_never_makes_a_claim(evidence: Evidence, data: st.DataObject):
    before = decide(evidence).decision
    name = data.draw(st.sampled_from([each for each in RECORDS if getattr(evidence, each)]))
    place = data.draw(st.integers(0, len(getattr(evidence, name)) - 1))
    after = decide(_without(evidence, name, place)).decision
    assert after in (before, AWAIT, None) or (after == REVISE and before is None)


@FEW
@given(cases(), st.data())
def test_one_receipt_less_never_makes_a_claim_however_it_goes(evidence: Evidence, data: st.DataObject):
    """Left out with the others numbered anew, about something else, or a failure of nobody's."""
    before = _claims(evidence)
    place = data.draw(st.integers(0, len(evidence.receipts) - 1))
    rest = [each for index, each in enumerate(evidence.receipts) if index != place]
    renumbered = [replaced(each, number=number, of=len(rest)) for number, each in enumerate(rest, start=1)]
    for less in (
        replace(evidence, receipts=renumbered),
        sample_receipts.changed(evidence, place, dims={"m": 8, "n": 128}, achieved=[]),
        failed(evidence, place, "host"),
    ):
        for name, after in _claims(less).items():
            # What a receipt alone accused may no longer be accused; then the others may still show a loss.
            assert after in (before[name], AWAIT, None) or (before[name] == REVISE and after == BASELINE), name


def _claims(evidence: Evidence) -> dict[str, str | None]:
    """What is decided of each regime, and of all together."""
    decision = decide(evidence)
    return {"all": decision.decision} | {each.name: each.decision for each in decision.regimes}


@FEW
@given(cases(), st.data())
def test_worse_evidence_never_improves_a_decision(evidence: Evidence, data: st.DataObject):
    before = decide(evidence).decision
    worse = data.draw(st.sampled_from([_slower, _fatter, _wrong_cell, _lost_on_target]))(evidence)
    assert ORDER[decide(worse).decision] <= ORDER[before]


@FEW
@given(cases())
def test_faults_of_others_never_become_revise(evidence: Evidence):
    decision = decide(evidence)
    if decision.decision == REVISE:
        revise = [each for each in decision.findings if reasons()[each.code].effect == "revise"]
        assert revise and {each.subject for each in revise} == {"kernel"}
    clean = replace(evidence, cells=[replaced(each, outcome="agrees", code="") for each in evidence.cells])
    clean = replace(
        clean,
        receipts=[
            replaced(each, failures=[one for one in each.failures if one.role != "candidate"])
            for each in clean.receipts
        ],
    )
    assert decide(clean).decision != REVISE


def _slower(evidence: Evidence) -> Evidence:
    """Every candidate takes twice its time, alone and in the step."""
    audit = evidence.frozen.audit
    found = []
    for each in evidence.receipts:
        if each.session is None:
            found.append(each)
            continue
        ratio = each.verdict.ratio.ratio if each.verdict and each.verdict.ratio else 1.0
        nearest = min(RATIOS, key=lambda known: abs(known - ratio))
        control = 1.2 if each.verdict and "control-clear-of-1" in each.verdict.reasons else 1.0
        peak = tuple(one.peak_bytes for one in each.memory)
        found.append(
            sample_receipts.receipt(
                audit,
                part=each.part,
                dtype=each.dtype,
                number=each.number,
                of=each.of,
                ratio=2 * nearest,
                control=control,
                peak=peak,
                failures=each.failures,
            )
        )
    return replace(evidence, receipts=found)


def _fatter(evidence: Evidence) -> Evidence:
    def grown(memory: object) -> object:
        if memory.role != "candidate":
            return memory
        return replaced(memory, temporary_bytes=2 * memory.temporary_bytes, peak_bytes=2 * memory.peak_bytes)

    found = [replaced(each, memory=[grown(one) for one in each.memory]) for each in evidence.receipts]
    return replace(evidence, receipts=found)


def _wrong_cell(evidence: Evidence) -> Evidence:
    return _with(evidence, "cells", 0, outcome="differs", code="values-differ")


def _lost_on_target(evidence: Evidence) -> Evidence:
    return failed(evidence, 0, "candidate", all_lost=evidence.receipts[0].session is None)


@pytest.mark.parametrize("name", RECORDS)
def test_of_a_kept_kernel_nothing_may_be_missing(name: str):
    evidence = measured()
    assert decide(evidence).decision == KEEP
    for place in range(len(getattr(evidence, name))):
        assert decide(_without(evidence, name, place)).decision in (AWAIT, None), (name, place)
