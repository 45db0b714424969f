"""What a fixture's result should be: the represented-input oracle, the original-data oracle, and wrong variants of both.

Arrays are named NAME.LEAF, leaf by leaf of the result tree:

    expected.0            represented-input oracle, cast once to the result's dtype
    precise.0             the same before that cast, in the oracle's dtype
    original.0            the oracle on the original data, in the oracle's dtype
    flushed-K.0           `expected` under another reading of the subnormal policy, where it differs
    budget.0              largest error that agreement allows, float64 (derived agreement only)
    control:NAME.0        what a known-bad stand-in returns, in the result's dtype
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, product
from typing import Any

import ml_dtypes  # registers bfloat16 and float8 with NumPy
import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.contract.dtypes import is_float
from kernel_audit.fixture import originals, represented
from kernel_audit.records import Fixture

Leaves = list[np.ndarray]
OracleFunction = Callable[[dict[str, np.ndarray]], Leaves]


def expectation(
    audit: Audit,
    fixture: Fixture,
    binding: dict[str, str],
    result_dtypes: Sequence[str],
    oracle: OracleFunction,
    controls: dict[str, OracleFunction],
) -> dict[str, np.ndarray]:
    """All arrays of one fixture at one dtype binding (names above).

    `oracle` maps operands by name, already in the oracle's dtype, to result leaves in that dtype.
    """
    data = originals(audit, fixture)
    stored = represented(audit, data, binding)
    dtype = np.dtype(audit.precision.oracle)
    precise = oracle(_promoted(stored, dtype))
    arrays: dict[str, np.ndarray] = {}
    _put(arrays, "precise", precise)
    _put(arrays, "expected", _cast(precise, result_dtypes))
    _put(arrays, "original", oracle(_promoted(data, dtype)))
    for number, leaves in enumerate(_flushed(audit, stored, dtype, result_dtypes, oracle)):
        _put(arrays, f"flushed-{number}", leaves)
    for name, control in controls.items():
        _put(arrays, f"control:{name}", _cast(control(_promoted(stored, dtype)), result_dtypes))
    _add_swapped(audit, arrays, stored, dtype, result_dtypes, oracle)
    narrowed = {name: _through_bfloat16(array) for name, array in stored.items()}
    _put(arrays, "control:operands-rounded", _cast(oracle(_promoted(narrowed, dtype)), result_dtypes))
    return arrays


def leaves(arrays: dict[str, np.ndarray], name: str) -> Leaves:
    """The leaves of one named result, in order; empty when there is none."""
    found: Leaves = []
    while f"{name}.{len(found)}" in arrays:
        found.append(arrays[f"{name}.{len(found)}"])
    return found


def as_leaves(result: Any) -> Leaves:
    """An oracle's return value as leaves: one array, or a tuple or list of arrays."""
    return [np.asarray(each) for each in result] if isinstance(result, (tuple, list)) else [np.asarray(result)]


def _put(arrays: dict[str, np.ndarray], name: str, values: Leaves) -> None:
    arrays.update({f"{name}.{index}": value for index, value in enumerate(values)})


def _promoted(stored: dict[str, np.ndarray], dtype: np.dtype) -> dict[str, np.ndarray]:
    return {name: array.astype(dtype) if is_float(array.dtype.name) else array for name, array in stored.items()}


def _cast(values: Leaves, result_dtypes: Sequence[str]) -> Leaves:
    with np.errstate(over="ignore", invalid="ignore"):
        return [each.astype(np.dtype(name)) for each, name in zip(values, result_dtypes, strict=True)]


def _through_bfloat16(array: np.ndarray) -> np.ndarray:
    if not is_float(array.dtype.name):
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np.dtype("bfloat16")).astype(array.dtype)


def flush(array: np.ndarray, smallest_normal: float) -> np.ndarray:
    """`array` with every value below the smallest normal number replaced by a zero of its sign."""
    if not is_float(array.dtype.name):
        return array
    wide = array.astype(np.float64)
    return np.where(np.abs(wide) < smallest_normal, np.copysign(0.0, wide), wide).astype(array.dtype)


def smallest_normal(dtype: str) -> float:
    """The smallest normal number of a float dtype."""
    return float(ml_dtypes.finfo(np.dtype(dtype)).smallest_normal)


def _flushed(
    audit: Audit,
    stored: dict[str, np.ndarray],
    dtype: np.dtype,
    result_dtypes: Sequence[str],
    oracle: OracleFunction,
) -> list[Leaves]:
    """The readings of the subnormal policy besides the plain one: operands, sums and results flushed or not."""
    if audit.values.subnormals == "preserve":
        return []
    tiny = smallest_normal(audit.precision.arithmetic)
    promoted, plain_precise = _promoted(stored, dtype), oracle(_promoted(stored, dtype))
    plain = _cast(plain_precise, result_dtypes)
    if not any(_holds_subnormals(each, tiny) for each in [*promoted.values(), *plain_precise, *plain]):
        return []
    readings = list(product((False, True), repeat=3)) if audit.values.subnormals == "either" else [(True, True, True)]
    found: list[Leaves] = []
    for operands, sums, results in readings:
        given = _promoted(stored, dtype)
        given = {name: flush(each, tiny) for name, each in given.items()} if operands else given
        precise = oracle(given)
        precise = [flush(each, tiny) for each in precise] if sums else precise
        cast = _cast(precise, result_dtypes)
        if results:
            cast = [_flush_result(each) for each in cast]
        if not any(_same_bits(cast, other) for other in [plain, *found]):
            found.append(cast)
    return found


def _holds_subnormals(array: np.ndarray, tiny: float) -> bool:
    if not is_float(array.dtype.name):
        return False
    magnitude = np.abs(array)
    limit = max(tiny, smallest_normal(array.dtype.name))
    with np.errstate(invalid="ignore"):  # ml_dtypes warns where a NaN is compared
        return bool(np.any((magnitude > 0) & (magnitude < limit)))


def _flush_result(array: np.ndarray) -> np.ndarray:
    return flush(array, smallest_normal(array.dtype.name)) if is_float(array.dtype.name) else array


def _same_bits(left: Leaves, right: Leaves) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(left, right, strict=True))


def _add_swapped(
    audit: Audit,
    arrays: dict[str, np.ndarray],
    stored: dict[str, np.ndarray],
    dtype: np.dtype,
    result_dtypes: Sequence[str],
    oracle: OracleFunction,
) -> None:
    """The oracle with its first two interchangeable operands exchanged, where there are two."""
    for first, second in pairwise(audit.operands):
        if (first.dims, first.dtype) == (second.dims, second.dtype):
            given = {**stored, first.name: stored[second.name], second.name: stored[first.name]}
            _put(arrays, "control:operands-swapped", _cast(oracle(_promoted(given, dtype)), result_dtypes))
            return
