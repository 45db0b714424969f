"""Only a profile from the audit's own target may decline; no other feeds a decision; unfit times say so."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
import sample_evidence
import sample_profile
import sample_receipts

from kernel_audit.contract import Worth
from kernel_audit.decision import decide
from kernel_audit.evidence import Evidence
from kernel_audit.records import AWAIT, BASELINE, KEEP, REVISE, ProfileRecord

SMALL = {"local-arithmetic": 0.05, "input-staging": 0.85, "dispatch": 0.1}
LARGE = {"local-arithmetic": 0.6, "input-staging": 0.3, "dispatch": 0.1}


def evidence_with(record: ProfileRecord | None, audit: dict[str, object] | None = None, **changes: object) -> Evidence:
    base = sample_evidence.agreeing().evidence
    asked = {"worth": worth(), "targets": ["tpu:v5e"], "dtypes": {"T": ["float32"]}, **(audit or {})}
    audit = msgspec.structs.replace(base.frozen.audit, **asked)
    frozen = msgspec.structs.replace(base.frozen, audit=audit)
    return replace(base, frozen=frozen, profile=record, **changes)


def worth(**changes: object) -> Worth:
    return Worth(**{"objective": "step-time", "margin": 0.1, "step": "train.py:step", **changes})


def codes(record: ProfileRecord) -> set[str]:
    return {each.code for each in decide(evidence_with(record)).findings}


def test_a_share_of_five_per_cent_on_the_target_declines_a_worth_of_ten():
    decision = decide(evidence_with(sample_profile.on_target(SMALL)))
    assert decision.decision == BASELINE
    (found,) = [each for each in decision.findings if each.code == "no-persuasive-region"]
    assert found.scope == "tpu:v5e, float32" and "5.0%" in found.text and "1.053" in found.text
    assert "ordinary JAX is the recommendation for the platform profiled" in found.text
    assert decision.summary.startswith("Use the baseline. no-persuasive-region:")
    assert "would stay as they are" in found.text


def test_a_large_share_on_the_target_does_not():
    decision = decide(evidence_with(sample_profile.on_target(LARGE)))
    assert decision.decision == AWAIT and not {"no-persuasive-region"} & {each.code for each in decision.findings}


@pytest.mark.parametrize("shares", [SMALL, LARGE])
def test_logical_devices_decide_nothing_whatever_their_shares(shares):
    decision = decide(evidence_with(sample_profile.profile(shares)))
    assert decision.decision == AWAIT
    (found,) = [each for each in decision.findings if each.code == "share-is-conditional"]
    assert "if the share on a target were that" in found.text and "decides nothing" in found.text


def test_a_device_that_the_audit_does_not_name_decides_nothing():
    record = sample_profile.on_target(SMALL, target="tpu:v6e", device_kind="TPU v6 lite")
    assert decide(evidence_with(record)).decision == AWAIT


def test_the_interval_must_lie_below_the_worth_and_not_only_the_share():
    record = sample_profile.on_target(SMALL)
    opportunity = [
        msgspec.structs.replace(each, share_high=0.12) if each.region == "local-arithmetic" else each
        for each in record.opportunity
    ]
    assert decide(evidence_with(msgspec.structs.replace(record, opportunity=opportunity))).decision == AWAIT


def test_a_broken_promise_outweighs_the_decline():
    wrong = evidence_with(sample_profile.on_target(SMALL))
    cells = [sample_evidence.replaced(wrong.cells[0], outcome="differs", code="values-differ"), *wrong.cells[1:]]
    assert decide(replace(wrong, cells=cells)).decision == REVISE


UNFIT = {
    "dispatch-time": {"warm": "unsynchronised"},
    "logical-device-time-as-throughput": {"platform": "cpu", "logical": True},
    "model-as-time": {"provenance": "static model"},
    "not-warm": {"warm": "compiled"},
}


@pytest.mark.parametrize("code", UNFIT)
def test_times_that_are_not_the_steps_are_named_and_decline_nothing(code):
    record = sample_profile.on_target(SMALL)
    changes = dict(UNFIT[code])
    if changes.get("warm") == "unsynchronised":
        changes["warm"] = msgspec.structs.replace(record.warm, synchronised=0)
    elif changes.get("warm") == "compiled":
        changes["warm"] = msgspec.structs.replace(record.warm, compile_events=2)
    decision = decide(evidence_with(msgspec.structs.replace(record, **changes)))
    assert decision.decision == AWAIT and code in {each.code for each in decision.findings}
    profiling = next(each for each in decision.review if each.name == "profiling")
    assert (profiling.verdict, profiling.codes) == ("revise", [code])


def test_a_sound_profile_is_accepted_by_the_review():
    decision = decide(evidence_with(sample_profile.profile()))
    profiling = next(each for each in decision.review if each.name == "profiling")
    assert profiling.verdict == "accept" and "conditional" in profiling.text
    without = decide(evidence_with(None))
    assert next(each for each in without.review if each.name == "profiling").verdict == "unresolved"


def test_a_candidate_that_takes_nothing_of_the_step_is_declined_on_the_target():
    shares = {"input-staging": 0.9, "dispatch": 0.1, "local-arithmetic": 0.0}
    assert decide(evidence_with(sample_profile.on_target(shares))).decision == BASELINE


def planted(**changes: object) -> ProfileRecord:
    return sample_profile.on_target(SMALL, **changes)


def traced(**changes: object) -> ProfileRecord:
    return planted(traced=msgspec.structs.replace(planted().traced, **changes))


INFORMS = {
    "an unverified reader": (lambda: traced(verified=False), {}),
    "devices of another kind": (lambda: planted(device_kind="TPU v6 lite"), {}),
    "no events": (lambda: traced(events=0), {}),
    "the candidate in place": (lambda: planted(side="candidate"), {}),
    "another step": (lambda: planted(step="train.py:other"), {}),
    "other sizes": (lambda: planted(dims={"m": 8, "n": 128}), {}),
    "another dtype": (lambda: planted(dtypes={"x": "bfloat16"}), {}),
    "dtypes of no operand": (lambda: planted(dtypes={}), {}),
    "an objective that is no time": (planted, {"worth": worth(objective="peak-bytes")}),
    "a second dtype": (planted, {"dtypes": {"T": ["float32", "bfloat16"]}}),
    "a second target": (planted, {"targets": ["tpu:v5e", "gpu:h200"]}),
    "modes": (planted, {"modes": {"causal": [True, False]}}),
}


@pytest.mark.parametrize("what", INFORMS)
def test_a_profile_of_the_target_that_is_not_about_the_question_only_informs(what: str):
    make, audit = INFORMS[what]
    decision = decide(evidence_with(make(), audit))
    assert decision.decision == AWAIT
    (found,) = [each for each in decision.findings if each.code == "profile-informs-only"]
    assert "declines nothing" in found.text


def test_what_is_not_mapped_may_be_the_candidates():
    shares = {"local-arithmetic": 0.05, "input-staging": 0.85, "unmapped": 0.1}
    assert decide(evidence_with(sample_profile.on_target(shares))).decision == AWAIT
    assert decide(evidence_with(planted(mapping={**planted().mapping, "unmapped": 0.2}))).decision == AWAIT


def test_more_examples_a_second_need_less_than_the_same_share_of_time():
    """A tenth more examples a second are 9.1 % less time."""
    shares = {"local-arithmetic": 0.095, "input-staging": 0.805, "dispatch": 0.1}
    record = sample_profile.on_target(shares)
    assert decide(evidence_with(record)).decision == BASELINE
    assert decide(evidence_with(record, {"worth": worth(objective="examples-per-second")})).decision == AWAIT
    small = {"worth": worth(objective="examples-per-second")}
    assert decide(evidence_with(planted(), small)).decision == BASELINE


def test_a_profile_declines_the_regime_that_it_was_taken_on_and_no_other():
    measured = sample_receipts.measured(audit={"targets": ["tpu:v5e", "gpu:h200"]})
    shares = {"local-arithmetic": 0.02, "input-staging": 0.88, "dispatch": 0.1}
    record = sample_profile.on_target(shares, margin=0.05, step=sample_receipts.STEP_PLACE)
    regimes = {each.name: each.decision for each in decide(replace(measured, profile=record)).regimes}
    assert regimes == {
        "tpu:v5e, float32": BASELINE,
        "tpu:v5e, bfloat16": KEEP,
        "gpu:h200, float32": AWAIT,
        "gpu:h200, bfloat16": AWAIT,
    }
