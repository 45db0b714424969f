"""What a receipt says of its audit, recomputed from the audit: the margin of its session, bytes, and the floor of its times."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from kernel_audit.contract import Audit, Operand
from kernel_audit.contract.step_operands import put_to_step
from kernel_audit.records import STEP, Receipt, digest_of, dtype_text
from kernel_audit.statistics import least_s

RELATIVE = 1e-9


def audit_contradictions(receipt: Receipt, audit: Audit) -> Iterator[str]:
    """Nothing for a receipt of another contract: that is another thing to say of it."""
    if receipt.contract != digest_of(audit):
        return
    session = receipt.session
    if session is None:
        return
    margin = audit.worth.session_margin
    if session.plan.margin != margin:
        yield f"its session was planned for a margin of {session.plan.margin!r}, and the audit asks for {margin!r}"
    binding = _binding(audit, receipt.dtype)
    if binding is None or receipt.dims.keys() != audit.declared_dims.keys():
        return
    put, dims = put_to_step(audit, receipt.dims) if receipt.part == STEP else (audit, receipt.dims)
    operands = sum(_bytes(each, dims, binding) for each in put.operands)
    least = operands + sum(_bytes(each, dims, binding) for each in put.results)
    for each in receipt.achieved:
        if each.least_bytes != least:
            yield f"operands and results are said to be {each.least_bytes} bytes, and the audit's are {least}"
    floor_s = least_s(least, operands, receipt.ceilings)
    for side in session.sides:
        if not math.isclose(side.floor_s, floor_s, rel_tol=RELATIVE):
            yield f"the floor of the {side.role} is said to be {side.floor_s!r} s, its bytes and ceilings give {floor_s!r} s"


def _binding(audit: Audit, dtype: str) -> dict[str, str] | None:
    """The choice of dtypes that a receipt writes as `dtype`."""
    return next((each for each in audit.dtype_bindings() if dtype_text(each) == dtype), None)


def _bytes(operand: Operand, dims: dict[str, int], binding: dict[str, str]) -> int:
    return math.prod(operand.shape(dims)) * _item_bytes(binding.get(operand.dtype, operand.dtype))


def _item_bytes(dtype: str) -> int:
    """Bytes of an element, by the first number in the name of its dtype: its bits; a byte at least."""
    bits = re.search(r"\d+", dtype)
    return max(1, int(bits.group()) // 8) if bits else 1
