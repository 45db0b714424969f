"""The comparison of values: what agrees under each agreement, and what a difference is reported as."""

from __future__ import annotations

import numpy as np
import pytest
import sample_evidence
from sample_evidence import replaced

from kernel_audit.contract import Agreement, Audit, Values
from kernel_audit.matrix import compare as module
from kernel_audit.matrix.compare import compare

EXACT = Agreement(kind="exact", derivation="stated")
ULPS = Agreement(kind="ulp", ulps=2, derivation="stated")
DERIVED = Agreement(kind="derived", factor=2.0, derivation="stated")


def audit_of(agreement: Agreement = EXACT, signed_zeros: bool = False) -> Audit:
    values = Values(families=["normal"], signed_zeros=signed_zeros)
    return replaced(sample_evidence.small_audit(), agreement=agreement, values=values)


def arrays_of(*leaves: np.ndarray, **others: np.ndarray) -> dict[str, np.ndarray]:
    made = dict(others)
    for index, leaf in enumerate(leaves):
        made[f"expected.{index}"] = leaf
        made[f"precise.{index}"] = leaf.astype(np.float64) if leaf.dtype.kind in "fV" else leaf
    return made


def moved(array: np.ndarray, units: int) -> np.ndarray:
    """Every element `units` representable values further from zero."""
    width = np.dtype(f"u{array.dtype.itemsize}")
    return (array.view(width) + width.type(units)).view(array.dtype)


RIGHT = np.random.default_rng(1).normal(size=(9, 33)).astype(np.float32)


def test_the_same_agrees_and_has_no_error():
    found = compare(audit_of(), [RIGHT.copy()], arrays_of(RIGHT))
    assert found.agrees
    assert (found.error_max, found.error_ulps, found.differing, found.nonfinite_mismatches) == (0.0, 0.0, 0, 0)


@pytest.mark.parametrize(
    ("actual", "code", "detail"),
    [
        ([RIGHT[:-1]], "result-shape-differs", "leaf 0: (8, 33) instead of (9, 33)"),
        ([RIGHT[None]], "result-shape-differs", "leaf 0: (1, 9, 33)"),
        ([RIGHT.astype(np.float64)], "result-dtype-differs", "leaf 0: float64 instead of float32"),
        ([RIGHT.astype(np.dtype("bfloat16"))], "result-dtype-differs", "bfloat16 instead of float32"),
        ([RIGHT, RIGHT], "result-shape-differs", "2 results instead of 1"),
        ([], "result-shape-differs", "0 results instead of 1"),
        ([RIGHT[:-1].astype(np.float64)], "result-shape-differs", "leaf 0"),
    ],
)
def test_shape_and_dtype_come_first(actual, code, detail):
    found = compare(audit_of(), actual, arrays_of(RIGHT))
    assert found.code == code and detail in found.detail
    assert found.error_max is None


def test_positions_values_and_counts():
    wrong = RIGHT.copy()
    wrong[8, 30:] += 1.0
    wrong[2, 5] = np.nan
    found = compare(audit_of(), [wrong], arrays_of(RIGHT))
    assert found.code == "values-differ"
    assert (found.differing, found.nonfinite_mismatches) == (4, 1)
    assert [each.position for each in found.first] == [[2, 5], [8, 30], [8, 31], [8, 32]]
    assert found.first[0].actual == "nan" and float(found.first[0].expected) == RIGHT[2, 5]
    assert found.error_max == pytest.approx(1.0, rel=1e-6)


def test_only_the_first_positions_are_kept_over_all_leaves():
    found = compare(audit_of(), [RIGHT + 1, RIGHT + 2], arrays_of(RIGHT, RIGHT))
    assert found.differing == 2 * RIGHT.size
    assert len(found.first) == module.FIRST and {each.leaf for each in found.first} == {0}
    found = compare(audit_of(), [RIGHT, RIGHT + 2], arrays_of(RIGHT, RIGHT))
    assert {each.leaf for each in found.first} == {1}


def test_chunks_change_nothing(monkeypatch):
    wrong = RIGHT.copy()
    wrong[::2, ::3] *= 1.5
    whole = compare(audit_of(), [wrong], arrays_of(RIGHT))
    monkeypatch.setattr(module, "CHUNK", 7)
    assert compare(audit_of(), [wrong], arrays_of(RIGHT)) == whole


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"])
@pytest.mark.parametrize(("units", "agrees"), [(1, True), (2, True), (3, False)])
def test_units_in_the_last_place(dtype, units, agrees):
    right = np.array([1.0, -16.0, 0.125], np.float32).astype(np.dtype(dtype))
    found = compare(audit_of(ULPS), [moved(right, units)], arrays_of(right))
    assert found.agrees is agrees
    assert found.error_ulps == units
    assert not compare(audit_of(EXACT), [moved(right, units)], arrays_of(right)).agrees


def test_values_that_are_not_finite():
    right = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    for agreement in (EXACT, ULPS, DERIVED):
        audit, arrays = audit_of(agreement), arrays_of(right)
        assert compare(audit, [right.copy()], arrays).agrees
        other_nan = right.copy()
        other_nan.view(np.uint32)[0] |= 1
        assert compare(audit, [other_nan], arrays).agrees
        for place, value in [(0, 1.0), (1, -np.inf), (1, np.nan), (2, np.finfo(np.float32).min), (3, np.inf)]:
            wrong = right.copy()
            wrong[place] = value
            found = compare(audit, [wrong], arrays)
            assert (found.differing, found.nonfinite_mismatches) == (1, 1), (agreement.kind, place, value)


@pytest.mark.parametrize("agreement", [EXACT, ULPS, DERIVED], ids=lambda each: each.kind)
def test_the_sign_of_a_zero_counts_where_the_contract_says_so(agreement):
    right, wrong = np.array([0.0, -0.0], np.float32), np.array([-0.0, 0.0], np.float32)
    assert compare(audit_of(agreement), [wrong], arrays_of(right)).agrees
    if agreement is EXACT:
        assert compare(audit_of(agreement, signed_zeros=True), [wrong], arrays_of(right)).differing == 2
    assert compare(audit_of(agreement, signed_zeros=True), [right.copy()], arrays_of(right)).agrees


def test_another_reading_of_the_subnormal_policy_agrees_element_by_element():
    right = np.array([1e-40, 2e-40, 1.0], np.float32)
    flushed = np.array([0.0, 0.0, 1.0], np.float32)
    arrays = arrays_of(right, **{"flushed-0.0": flushed})
    for actual, agrees in [
        ([1e-40, 2e-40, 1.0], True),
        ([0.0, 0.0, 1.0], True),
        ([0.0, 2e-40, 1.0], True),
        ([3e-40, 0.0, 1.0], False),
        ([0.0, 0.0, 0.0], False),
    ]:
        assert compare(audit_of(), [np.array(actual, np.float32)], arrays).agrees is agrees


def test_a_reading_of_one_leaf_is_none_of_another():
    right = np.array([1e-40], np.float32)
    arrays = arrays_of(right, right, **{"flushed-0.1": np.zeros(1, np.float32)})
    assert compare(audit_of(), [right, np.zeros(1, np.float32)], arrays).agrees
    assert not compare(audit_of(), [np.zeros(1, np.float32), right], arrays).agrees


def test_a_derived_budget_is_measured_against_the_precise_value():
    right = np.array([1.0, 2.0], np.float32)
    arrays = {**arrays_of(right), "budget.0": np.array([1e-3, 1e-6])}
    assert compare(audit_of(DERIVED), [np.array([1.0009, 2.0], np.float32)], arrays).agrees
    found = compare(audit_of(DERIVED), [np.array([1.0, 2.0009], np.float32)], arrays)
    assert [each.position for each in found.first] == [[1]]


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint8", "int16", "bool"])
@pytest.mark.parametrize("agreement", [EXACT, ULPS, DERIVED], ids=lambda each: each.kind)
def test_what_is_no_float_must_be_the_same(dtype, agreement):
    right = np.array([1, 0, 1, 0], dtype)
    wrong = np.array([1, 1, 1, 0], dtype)
    assert compare(audit_of(agreement), [right.copy()], arrays_of(right)).agrees
    found = compare(audit_of(agreement), [wrong], arrays_of(right))
    assert (found.differing, found.error_max) == (1, 1.0)


def test_a_scalar_result_and_an_empty_one():
    scalar = np.float32(2.0).reshape(())
    found = compare(audit_of(), [np.float32(3.0).reshape(())], arrays_of(scalar))
    assert found.first[0].position == []
    assert compare(audit_of(), [np.zeros((0, 4), np.float32)], arrays_of(np.zeros((0, 4), np.float32))).agrees


def test_a_result_in_another_memory_order_is_compared_by_position():
    assert compare(audit_of(), [np.asfortranarray(RIGHT)], arrays_of(RIGHT)).agrees
    assert not compare(audit_of(), [RIGHT[::-1]], arrays_of(RIGHT)).agrees
