"""Controls: stand-ins of known worth put through the very comparison that judges the cells.

A known-bad one must be rejected wherever it differs from the oracle; the oracle itself must be accepted. A control on the
wrong side says that the audit's check cannot be trusted, and nothing about the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes  # registers bfloat16 and float8 with NumPy  # noqa: F401
import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.contract.dtypes import is_float
from kernel_audit.matrix.compare import Comparison, compare
from kernel_audit.oracle import leaves
from kernel_audit.records import Control

# These move a value by less than a rounding or two: only an exact agreement claims to see them.
FINE = ("one-ulp-off", "operands-rounded", "rounded-early")


def judge_controls(
    audit: Audit, fixture: str, dtype: str, mode: dict[str, object], arrays: dict[str, np.ndarray]
) -> list[Control]:
    """One record a control for one fixture at one dtype."""
    records = [_accepted("oracle", audit, fixture, dtype, mode, leaves(arrays, "expected"), arrays)]
    for name, wrong in wrong_results(arrays):
        records.append(_rejected(name, audit, fixture, dtype, mode, wrong, arrays))
    return records


def judge_baseline(
    audit: Audit,
    name: str,
    fixture: str,
    dtype: str,
    mode: dict[str, object],
    actual: list[np.ndarray],
    arrays: dict[str, np.ndarray],
) -> Control:
    """A baseline as a control that must be accepted."""
    return _accepted(f"baseline:{name}", audit, fixture, dtype, mode, actual, arrays)


def wrong_results(arrays: dict[str, np.ndarray]) -> Iterator[tuple[str, list[np.ndarray]]]:
    """(name, leaves) of each known-bad result: derived from the oracle's, and those that the oracle's worker made."""
    right = leaves(arrays, "expected")
    yield "zeros", [np.zeros_like(each) for each in right]
    yield "last-row-wrong", [_spoiled(each, 0) for each in right]
    yield "last-column-wrong", [_spoiled(each, -1) for each in right]
    yield "shifted-by-one-row", [np.roll(each, 1, axis=0) if each.ndim else each for each in right]
    yield "one-ulp-off", [_next_magnitude(right[0]), *right[1:]]
    yield "another-dtype", [each.astype(_other_dtype(each.dtype)) for each in right]
    names = dict.fromkeys(each.rpartition(".")[0] for each in arrays if each.startswith("control:"))
    for name in names:
        yield name.removeprefix("control:"), leaves(arrays, name)


def _accepted(
    name: str,
    audit: Audit,
    fixture: str,
    dtype: str,
    mode: dict[str, object],
    actual: list[np.ndarray],
    arrays: dict[str, np.ndarray],
) -> Control:
    found = compare(audit, actual, arrays)
    return Control(
        name=name,
        fixture=fixture,
        dtype=dtype,
        mode=mode,
        expected="accepted",
        outcome="accepted" if found.agrees else "rejected",
        reason=_why(found),
        kernel_error_max=found.error_max,
        differing=found.differing,
    )


def _rejected(
    name: str,
    audit: Audit,
    fixture: str,
    dtype: str,
    mode: dict[str, object],
    wrong: list[np.ndarray],
    arrays: dict[str, np.ndarray],
) -> Control:
    found = compare(audit, wrong, arrays)
    reason = _not_applicable(name, audit, wrong, arrays)
    outcome = "not-applicable" if reason else "accepted" if found.agrees else "rejected"
    return Control(
        name=name,
        fixture=fixture,
        dtype=dtype,
        mode=mode,
        expected="rejected",
        outcome=outcome,
        reason=reason or _why(found),
        kernel_error_max=found.error_max,
        differing=found.differing,
    )


def _not_applicable(name: str, audit: Audit, wrong: list[np.ndarray], arrays: dict[str, np.ndarray]) -> str:
    if name in FINE and audit.agreement.kind != "exact":
        return f"agreement {audit.agreement.kind!r} does not claim to see a difference this small"
    if _equals_a_reading(audit, wrong, arrays):
        return "returns what the oracle returns for this fixture"
    return ""


def _equals_a_reading(audit: Audit, wrong: list[np.ndarray], arrays: dict[str, np.ndarray]) -> bool:
    """Whether each element is one that the contract allows, told without the comparison that is under test here."""
    for index, (array, right) in enumerate(zip(wrong, leaves(arrays, "expected"), strict=True)):
        if array.shape != right.shape or array.dtype != right.dtype:
            return False
        names = [each for each in arrays if each.startswith("flushed-") and each.endswith(f".{index}")]
        allowed = np.zeros(array.shape, bool)
        for reading in (right, *[arrays[name] for name in names]):
            allowed |= _identical(audit, array, reading)
        if not allowed.all():
            return False
    return True


def _identical(audit: Audit, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    same = left == right
    if not is_float(left.dtype.name):
        return same
    if audit.values.signed_zeros:
        same &= np.signbit(left) == np.signbit(right)
    return same | (np.isnan(left) & np.isnan(right))


def _why(found: Comparison) -> str:
    if found.agrees:
        return ""
    return f"{found.code}: {found.detail}" if found.detail else f"{found.code}: {found.differing} elements"


def _spoiled(array: np.ndarray, axis: int) -> np.ndarray:
    """`array` with its last row (axis 0) or last column (axis -1) negated and moved by one."""
    if not array.ndim:
        return array
    spoiled = array.copy()
    last = (-1,) if axis == 0 else (..., -1)
    with np.errstate(over="ignore", invalid="ignore"):
        spoiled[last] = (-(array[last].astype(np.float64)) - 1.0).astype(array.dtype)
    return spoiled


def _next_magnitude(array: np.ndarray) -> np.ndarray:
    """`array` with its middle element one step further from zero: one unit in the last place."""
    moved = np.ascontiguousarray(array).copy()
    flat = moved.reshape(-1)
    place = flat.size // 2
    if not is_float(array.dtype.name):
        flat[place] = flat[place] + 1 if array.dtype != np.bool_ else ~flat[place]
        return moved
    bits = flat.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[array.dtype.itemsize])
    if np.isfinite(flat[place].astype(np.float64)):
        bits[place] += 1
    return moved


def _other_dtype(dtype: np.dtype) -> np.dtype:
    return np.dtype("bfloat16") if dtype == np.float32 else np.dtype("float32")
