"""Controls: each known-bad result is rejected where it differs, and a blind comparison is caught."""

from __future__ import annotations

import numpy as np
import pytest
import sample_evidence
from sample_evidence import replaced

from kernel_audit.contract import Agreement, Audit, Operand, Precision, Values
from kernel_audit.decision.rules import controls_on_the_wrong_side
from kernel_audit.matrix import controls as module
from kernel_audit.matrix.compare import Comparison
from kernel_audit.matrix.controls import FINE, judge_baseline, judge_controls
from kernel_audit.oracle import expectation
from kernel_audit.records import Fixture

ALWAYS = ("zeros", "last-row-wrong", "last-column-wrong", "shifted-by-one-row", "one-ulp-off", "another-dtype")
MADE_BY_THE_ORACLE = ("operands-swapped", "operands-rounded", "rounded-early")


def audit_of(kind: str = "exact", signed_zeros: bool = True) -> Audit:
    return replaced(
        sample_evidence.small_audit(),
        operands=[Operand(name=name, dtype="T", dims=["m", "n"]) for name in ("x", "y")],
        precision=Precision(arithmetic="float32", oracle="float32"),
        agreement=Agreement(kind=kind, ulps=1, factor=2.0, derivation="stated"),
        values=Values(families=["normal"], signed_zeros=signed_zeros),
    )


def axpy(given):
    return [given["x"] * 2 + given["y"]]


def rounded_early(given):
    doubled = (given["x"] * 2).astype(np.dtype("bfloat16")).astype(given["x"].dtype)
    return [doubled + given["y"]]


def arrays_of(audit: Audit, family: str = "normal", dtype: str = "float32", m: int = 9, n: int = 33):
    fixture = Fixture(name="f", dims={"m": m, "n": n}, family=family, seed=4)
    with np.errstate(over="ignore", invalid="ignore"):
        return expectation(audit, fixture, {"T": dtype}, [dtype], axpy, {"rounded-early": rounded_early})


def outcomes(audit: Audit, arrays) -> dict[str, str]:
    return {each.name: each.outcome for each in judge_controls(audit, "f", "float32", {}, arrays)}


def test_each_is_rejected_in_float32():
    found = outcomes(audit_of(), arrays_of(audit_of()))
    assert found == {"oracle": "accepted", **dict.fromkeys([*ALWAYS, *MADE_BY_THE_ORACLE], "rejected")}


def test_rounding_early_is_exact_in_bfloat16_and_says_so():
    records = judge_controls(audit_of(), "f", "bfloat16", {}, arrays_of(audit_of(), dtype="bfloat16"))
    found = {each.name: (each.outcome, each.reason) for each in records}
    same = ("not-applicable", "returns what the oracle returns for this fixture")
    assert found["rounded-early"] == same and found["operands-rounded"] == same
    assert found["one-ulp-off"][0] == found["zeros"][0] == "rejected"


def test_what_equals_the_oracle_is_not_applicable():
    found = outcomes(audit_of(), arrays_of(audit_of(), m=1))
    assert found["shifted-by-one-row"] == "not-applicable"
    assert found["zeros"] == found["last-row-wrong"] == "rejected"
    arrays = {"expected.0": np.zeros((3, 4), np.float32), "precise.0": np.zeros((3, 4), np.float32)}
    assert outcomes(audit_of(), arrays)["zeros"] == "not-applicable"
    minus = {"expected.0": -arrays["expected.0"], "precise.0": -arrays["precise.0"]}
    assert outcomes(audit_of(signed_zeros=True), minus)["zeros"] == "rejected"
    assert outcomes(audit_of(signed_zeros=False), minus)["zeros"] == "not-applicable"


def test_fine_controls_are_for_exact_agreement_only():
    found = {
        each.name: each for each in judge_controls(audit_of("ulp"), "f", "float32", {}, arrays_of(audit_of("ulp")))
    }
    for name in FINE:
        assert found[name].outcome == "not-applicable" and "'ulp'" in found[name].reason
    assert found["zeros"].outcome == found["operands-swapped"].outcome == "rejected"


@pytest.mark.parametrize("family", ["normal", "integers", "cancellation", "large", "non-finite", "subnormals", "ties"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_no_control_is_ever_on_the_wrong_side(family, dtype):
    audit = audit_of()
    records = judge_controls(audit, "f", dtype, {}, arrays_of(audit, family, dtype))
    wrong = [each for each in records if each.outcome not in (each.expected, "not-applicable")]
    assert wrong == []


def test_integers_and_tuples_have_controls():
    whole = np.arange(12, dtype=np.int32).reshape(3, 4)
    arrays = {f"{name}.{leaf}": whole + leaf for name in ("expected", "precise") for leaf in range(2)}
    found = outcomes(audit_of(), arrays)
    assert found == {"oracle": "accepted", **dict.fromkeys(ALWAYS, "rejected")}
    flags = {f"{name}.0": np.array([True, False, True]) for name in ("expected", "precise")}
    assert outcomes(audit_of(), flags)["one-ulp-off"] == "rejected"


def test_a_baseline_must_be_accepted():
    audit, arrays = audit_of(), arrays_of(audit_of())
    good = judge_baseline(audit, "fused", "f", "float32", {}, [arrays["expected.0"]], arrays)
    bad = judge_baseline(audit, "fused", "f", "float32", {}, [arrays["expected.0"] + 1], arrays)
    assert (good.name, good.expected, good.outcome) == ("baseline:fused", "accepted", "accepted")
    assert bad.outcome == "rejected" and bad.reason == "values-differ: 297 elements"


def test_a_blind_comparison_is_caught(monkeypatch):
    arrays = arrays_of(audit_of())
    monkeypatch.setattr(module, "compare", lambda *given: Comparison(error_max=0.0, error_ulps=0.0))
    records = judge_controls(audit_of(), "f", "float32", {}, arrays)
    evidence = replace_controls(records)
    found = controls_on_the_wrong_side(evidence)
    assert {each.code for each in found} == {"control-accepted"}
    assert len(found) == len([*ALWAYS, *MADE_BY_THE_ORACLE])


def test_a_comparison_that_rejects_everything_is_caught(monkeypatch):
    arrays = arrays_of(audit_of())
    monkeypatch.setattr(module, "compare", lambda *given: Comparison("values-differ", 1.0, 1.0, differing=1))
    found = controls_on_the_wrong_side(replace_controls(judge_controls(audit_of(), "f", "float32", {}, arrays)))
    assert [each.code for each in found] == ["oracle-rejected"]


def test_a_comparison_that_looks_at_shapes_only_is_caught(monkeypatch):
    arrays = arrays_of(audit_of())
    real = module.compare

    def shapes_only(*given):
        found = real(*given)
        return found if found.code != "values-differ" else Comparison(error_max=0.0)

    monkeypatch.setattr(module, "compare", shapes_only)
    assert outcomes(audit_of(), arrays)["another-dtype"] == "rejected"
    assert outcomes(audit_of(), arrays)["last-column-wrong"] == "accepted"


def replace_controls(records):
    from dataclasses import replace

    return replace(sample_evidence.agreeing().evidence, controls=records)
