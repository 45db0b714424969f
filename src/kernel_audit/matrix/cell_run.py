"""In a worker: one program on one fixture, again on the same, and on permuted rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kernel_audit.contract import Audit
from kernel_audit.errors import EnvironmentFault
from kernel_audit.fixture import data_digest, originals, permutation, permuted, represented
from kernel_audit.records import Fixture

# One call: arrays in operand order -> (result leaves as NumPy arrays, whether a race was seen or None).
Call = Callable[[list[np.ndarray]], tuple[list[np.ndarray], bool | None]]


def run_cell(
    audit: Audit, fixture: Fixture, binding: dict[str, str], call: Call, *, again: bool = True, permute: bool = True
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """(observations, arrays "out.LEAF") of one cell. What the program raises is an observation, "raised".

    `again`: run once more on the same operands; `permute`: and on permuted ones. What was not tried is None.
    """
    data = originals(audit, fixture)
    stored = represented(audit, data, binding)
    before = data_digest(stored)
    observed: dict[str, Any] = {"fixture_digest": data_digest(data)}
    try:
        outputs, races = call(list(stored.values()))
        repeated, raced_again = call(list(stored.values())) if again else (None, False)
        observed["permutation_holds"] = _permutation_holds(audit, fixture, stored, outputs, call) if permute else None
    except Exception as error:  # the candidate's program failed: that is the cell's outcome
        if type(error).__name__ == "MLIRError":  # JAX cannot read back what it exported itself: no fault of the program
            raise EnvironmentFault(
                "JAX cannot read its own exported program", stage="run", where=fixture.name, got=_last_words(error)
            ) from None
        observed["raised"] = f"{type(error).__name__}: {_last_words(error)}"
        return observed, {}
    observed["races"] = None if races is None else bool(races or raced_again)
    observed["repeatable"] = None if repeated is None else _same(outputs, repeated)
    observed["inputs_unchanged"] = data_digest(stored) == before
    return observed, {f"out.{index}": array for index, array in enumerate(outputs)}


def _permutation_holds(
    audit: Audit, fixture: Fixture, stored: dict[str, np.ndarray], outputs: list[np.ndarray], call: Call
) -> bool | None:
    holds: bool | None = None
    for invariant in audit.invariants:
        size = fixture.dims[invariant.dim]
        if size < 2:
            continue
        order = permutation(size, fixture.seed)
        moved, _ = call(list(permuted(audit, stored, invariant.dim, order).values()))
        expected = []
        for output, result in zip(outputs, audit.results, strict=False):
            axes = [axis for axis, dim in enumerate(result.dims) if dim == invariant.dim]
            expected.append(np.take(output, order, axis=axes[0]) if axes and output.ndim > axes[0] else output)
        holds = _same(moved, expected) and holds is not False
    return holds


def _same(left: list[np.ndarray], right: list[np.ndarray]) -> bool:
    """Bit for bit, NaN payloads apart: their bits may differ between two right results."""
    return len(left) == len(right) and all(_same_array(a, b) for a, b in zip(left, right, strict=True))


def _same_array(left: np.ndarray, right: np.ndarray) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if left.tobytes() == right.tobytes():
        return True
    width = np.dtype(f"u{left.dtype.itemsize}")
    differ = np.ascontiguousarray(left).view(width) != np.ascontiguousarray(right).view(width)
    with np.errstate(invalid="ignore"):
        return bool(np.all(~differ | (np.isnan(left.astype(np.float64)) & np.isnan(right.astype(np.float64)))))


def _last_words(error: BaseException) -> str:
    """The line of a message that says most: the last one, as interpreters wrap a traceback around it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "Error" in line.split(":")[0]]
    return (telling or lines or [""])[-1][:300]
