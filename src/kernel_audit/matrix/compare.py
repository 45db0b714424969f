"""The comparison: one function for cells, controls and baselines alike. NumPy only; exact shape and dtype come first."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import ml_dtypes  # registers bfloat16 and float8 with NumPy  # noqa: F401
import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.contract.dtypes import is_float
from kernel_audit.oracle import leaves, unit_in_last_place
from kernel_audit.records import Difference

CHUNK = 1 << 20  # elements looked at together: bounds the memory of a comparison, not its result
FIRST = 5  # differing positions that a record keeps


@dataclass
class Comparison:
    """How a result stands against the represented-input oracle. Errors are in the unit of the result."""

    code: str = ""  # "" agrees; else "result-shape-differs", "result-dtype-differs" or "values-differ"
    error_max: float | None = None
    error_ulps: float | None = None
    differing: int = 0
    nonfinite_mismatches: int = 0
    first: list[Difference] = field(default_factory=list)
    detail: str = ""

    @property
    def agrees(self) -> bool:
        return not self.code


def compare(audit: Audit, actual: list[np.ndarray], arrays: dict[str, np.ndarray]) -> Comparison:
    """`actual` leaves against the expectation `arrays` (oracle/expectation.py) under the audit's agreement."""
    expected = leaves(arrays, "expected")
    if len(actual) != len(expected):
        return Comparison("result-shape-differs", detail=f"{len(actual)} results instead of {len(expected)}")
    for index, (mine, right) in enumerate(zip(actual, expected, strict=True)):
        if mine.shape != right.shape:
            return Comparison("result-shape-differs", detail=f"leaf {index}: {mine.shape} instead of {right.shape}")
        if mine.dtype != right.dtype:
            text = f"leaf {index}: {mine.dtype.name} instead of {right.dtype.name}"
            return Comparison("result-dtype-differs", detail=text)
    total = Comparison(error_max=0.0, error_ulps=0.0)
    for index in range(len(actual)):
        _compare_leaf(audit, index, actual[index], arrays, total)
    if total.differing:
        total.code = "values-differ"
    return total


def gaps(arrays: dict[str, np.ndarray]) -> tuple[float | None, float | None, float | None]:
    """(representation gap, part from input rounding, part from output rounding), maxima over finite elements.

    Differences are taken in the oracle's dtype; None when no element is finite.
    """
    whole, inputs, outputs = [], [], []
    for index, precise in enumerate(leaves(arrays, "precise")):
        cast, original = arrays[f"expected.{index}"].astype(precise.dtype), arrays[f"original.{index}"]
        whole.append(_largest(cast, original))
        inputs.append(_largest(precise, original))
        outputs.append(_largest(cast, precise))
    return _max(whole), _max(inputs), _max(outputs)


def _largest(left: np.ndarray, right: np.ndarray) -> float | None:
    with np.errstate(over="ignore", invalid="ignore"):
        difference = np.abs(left - right)
    finite = difference[np.isfinite(difference)]
    return float(finite.max()) if finite.size else None


def _max(values: list[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return max(known) if known else None


def _compare_leaf(
    audit: Audit, index: int, actual: np.ndarray, arrays: dict[str, np.ndarray], total: Comparison
) -> None:
    """Only elements whose bits differ from the oracle's are looked at closely: the others agree under any agreement."""
    names = [each.rpartition(".")[0] for each in arrays if each.endswith(f".{index}") and each.startswith("flushed-")]
    readings = [arrays[f"{name}.{index}"].reshape(-1) for name in ("expected", *names)]
    budget = arrays.get(f"budget.{index}")
    precise = arrays[f"precise.{index}"].reshape(-1)
    flat = np.ascontiguousarray(actual).reshape(-1)
    for start in range(0, flat.size, CHUNK):
        part = slice(start, start + CHUNK)
        places = start + np.flatnonzero(_bits(flat[part]) != _bits(readings[0][part]))
        if not places.size:
            continue
        allowed = None if budget is None else budget.reshape(-1)[places]
        close = [each[places] for each in readings]
        right, errors, ulps = _judge(audit, flat[places], close, precise[places], allowed)
        _record(total, index, actual.shape, places, flat[places], close[0], right, errors, ulps)


def _bits(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).view(np.dtype(f"u{array.dtype.itemsize}"))


def _judge(
    audit: Audit,
    actual: np.ndarray,
    readings: list[np.ndarray],
    precise: np.ndarray,
    budget: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(agrees, |error|, error in ulps) elementwise, each against the nearest reading that the contract allows."""
    if not is_float(actual.dtype.name):
        errors = np.abs(actual.astype(np.float64) - readings[0].astype(np.float64))
        return errors == 0, errors, errors
    wide = actual.astype(np.float64)
    agrees, errors, ulps = _against(audit, wide, readings[0], precise, budget)
    for reading in readings[1:]:
        other_agrees, other_errors, other_ulps = _against(audit, wide, reading, precise, budget)
        nearer = other_errors < errors
        agrees |= other_agrees
        errors, ulps = np.where(nearer, other_errors, errors), np.where(nearer, other_ulps, ulps)
    return agrees, errors, ulps


def _against(
    audit: Audit, wide: np.ndarray, reading: np.ndarray, precise: np.ndarray, budget: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(agrees, |error|, error in ulps) of float64 values against one reading; an error without a number is infinite."""
    target = reading.astype(np.float64)
    same = _same_value(audit, wide, target)
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(wide - target)
    errors[np.isnan(errors)] = np.inf
    errors[same] = 0.0
    ulps = errors / unit_in_last_place(target, reading.dtype.name)
    return _within(audit, same, wide, target, ulps, precise, budget), errors, ulps


def _same_value(audit: Audit, wide: np.ndarray, target: np.ndarray) -> np.ndarray:
    same = (wide == target) | (np.isnan(wide) & np.isnan(target))
    if audit.values.signed_zeros:
        same &= ~((wide == 0) & (target == 0)) | (np.signbit(wide) == np.signbit(target))
    return same


def _within(
    audit: Audit,
    same: np.ndarray,
    wide: np.ndarray,
    target: np.ndarray,
    ulps: np.ndarray,
    precise: np.ndarray,
    budget: np.ndarray | None,
) -> np.ndarray:
    """Where finite values agree although they are not the same; non-finite ones must be the same."""
    finite = np.isfinite(wide) & np.isfinite(target)
    if audit.agreement.kind == "ulp":
        return same | (finite & (ulps <= audit.agreement.ulps))
    if audit.agreement.kind == "derived" and budget is not None:
        with np.errstate(invalid="ignore", over="ignore"):
            return same | (finite & (np.abs(wide - precise.astype(np.float64)) <= budget))
    return same


def _record(
    total: Comparison,
    leaf: int,
    shape: tuple[int, ...],
    places: np.ndarray,
    actual: np.ndarray,
    expected: np.ndarray,
    agrees: np.ndarray,
    errors: np.ndarray,
    ulps: np.ndarray,
) -> None:
    finite = np.isfinite(errors)
    if finite.any():
        total.error_max = max(total.error_max or 0.0, float(errors[finite].max()))
        total.error_ulps = max(total.error_ulps or 0.0, float(ulps[finite].max()))
    total.nonfinite_mismatches += int((~finite).sum())
    wrong = np.flatnonzero(~agrees)
    total.differing += int(wrong.size)
    for place in wrong[: max(0, FIRST - len(total.first))]:
        position = [int(each) for each in np.unravel_index(int(places[place]), shape)]
        total.first.append(
            Difference(leaf=leaf, position=position, actual=_text(actual[place]), expected=_text(expected[place]))
        )


def _text(value: np.generic) -> str:
    number = float(value)
    return repr(number) if not math.isnan(number) else "nan"
