"""What a fixture's result should be: the represented and the original reading, flush readings, wrong variants."""

from __future__ import annotations

import numpy as np
import sample_evidence
from sample_evidence import replaced

from kernel_audit.contract import Audit, Operand, Precision, Values
from kernel_audit.fixture import originals, represented
from kernel_audit.matrix.compare import gaps
from kernel_audit.oracle import as_leaves, expectation, flush, leaves, smallest_normal
from kernel_audit.records import Fixture

TINY = 2.0**-126
DIMS = {"m": 9, "n": 33}


def audit_of(subnormals: str = "either", names: tuple[str, ...] = ("x", "y"), oracle: str = "float32") -> Audit:
    return replaced(
        sample_evidence.small_audit(),
        operands=[Operand(name=name, dtype="T", dims=["m", "n"]) for name in names],
        precision=Precision(arithmetic="float32", oracle=oracle),
        values=Values(families=["normal"], subnormals=subnormals),
    )


def axpy(given: dict[str, np.ndarray]) -> list[np.ndarray]:
    x = given["x"]
    return [x * x.dtype.type(2) + given["y"]]


def expected(audit: Audit, family: str, dtype: str, result: str = "", **controls) -> dict[str, np.ndarray]:
    fixture = Fixture(name="f", dims=DIMS, family=family, seed=3)
    return expectation(audit, fixture, {"T": dtype}, [result or dtype], axpy, controls)


def test_one_cast_at_the_end_and_the_original_beside_it():
    audit = audit_of()
    arrays = expected(audit, "normal", "bfloat16")
    data = originals(audit, Fixture(name="f", dims=DIMS, family="normal", seed=3))
    stored = represented(audit, data, {"T": "bfloat16"})
    precise = 2 * stored["x"].astype(np.float32) + stored["y"].astype(np.float32)
    assert arrays["precise.0"].dtype == np.float32 and np.array_equal(arrays["precise.0"], precise)
    assert arrays["expected.0"].dtype == np.dtype("bfloat16")
    assert np.array_equal(arrays["expected.0"], precise.astype(np.dtype("bfloat16")))
    assert np.array_equal(arrays["original.0"], 2 * data["x"] + data["y"])


def test_gaps_are_apart():
    arrays = expected(audit_of(), "normal", "bfloat16")
    whole, inputs, results = gaps(arrays)
    assert whole is not None and inputs is not None and results is not None
    assert 0 < inputs < whole + results and results > 0
    assert whole <= inputs + results
    assert gaps(expected(audit_of(), "normal", "float32")) == (0.0, 0.0, 0.0)


def test_gaps_of_what_is_not_finite_are_unknown():
    nan = np.full((2, 2), np.nan, np.float32)
    assert gaps({"precise.0": nan, "expected.0": nan, "original.0": nan}) == (None, None, None)


def readings(arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    return [arrays[name] for name in arrays if name.startswith("flushed-")]


def test_no_other_reading_where_nothing_is_subnormal():
    assert readings(expected(audit_of("either"), "normal", "float32")) == []
    assert readings(expected(audit_of("flush"), "normal", "bfloat16")) == []


def test_preserved_subnormals_have_one_reading():
    assert readings(expected(audit_of("preserve"), "subnormals", "float32")) == []


def test_flushed_subnormals_have_one_other_reading_without_any():
    (flushed,) = readings(expected(audit_of("flush"), "subnormals", "float32"))
    magnitude = np.abs(flushed)
    assert not ((magnitude > 0) & (magnitude < TINY)).any()


def test_either_reads_operands_sums_and_results_flushed_or_not():
    audit = audit_of("either")
    arrays = expected(audit, "subnormals", "float32")
    stored = represented(
        audit, originals(audit, Fixture(name="f", dims=DIMS, family="subnormals", seed=3)), {"T": "float32"}
    )
    operands = {name: flush(each, TINY) for name, each in stored.items()}
    wanted = [axpy(operands)[0], flush(axpy(stored)[0], TINY), flush(axpy(operands)[0], TINY)]
    found = readings(arrays)
    for each in wanted:
        assert any(each.tobytes() == other.tobytes() for other in found)
    assert len({each.tobytes() for each in [arrays["expected.0"], *found]}) == len(found) + 1


def test_flushing_keeps_the_sign_and_the_dtype():
    values = np.array([1e-40, -1e-40, 0.0, -0.0, 1.0, TINY], np.float32)
    flushed = flush(values, smallest_normal("float32"))
    assert flushed.dtype == np.float32
    assert flushed.tobytes() == np.array([0.0, -0.0, 0.0, -0.0, 1.0, TINY], np.float32).tobytes()
    whole = np.array([1, 2], np.int32)
    assert flush(whole, TINY) is whole


def test_wrong_variants_of_the_oracles_worker():
    arrays = expected(audit_of(), "normal", "float32", early=lambda given: [given["x"] + given["y"]])
    assert np.array_equal(arrays["control:operands-swapped.0"], axpy({"x": _of("y"), "y": _of("x")})[0])
    assert np.array_equal(arrays["control:early.0"], _of("x") + _of("y"))
    assert not np.array_equal(arrays["control:operands-rounded.0"], arrays["expected.0"])


def _of(name: str) -> np.ndarray:
    return originals(audit_of(), Fixture(name="f", dims=DIMS, family="normal", seed=3))[name]


def test_operands_are_swapped_only_where_they_are_alike():
    audit = replaced(
        audit_of(), operands=[Operand(name=n, dtype="T", dims=d) for n, d in (("x", ["m", "n"]), ("y", ["n"]))]
    )
    arrays = expected(audit, "normal", "float32")
    assert not any(each.startswith("control:operands-swapped") for each in arrays)


def test_a_float64_oracle_and_results_of_another_dtype():
    arrays = expected(audit_of(oracle="float64"), "normal", "bfloat16", "float32")
    assert arrays["precise.0"].dtype == np.float64
    assert arrays["expected.0"].dtype == np.float32


def test_leaves_of_a_tuple_of_results():
    one, two = np.zeros(2), np.ones(3)
    assert [each.shape for each in as_leaves((one, two))] == [(2,), (3,)]
    assert [each.shape for each in as_leaves(one)] == [(2,)]
    assert leaves({"out.0": one, "out.1": two, "outer.0": one}, "out") == [one, two]
    assert leaves({}, "out") == []
