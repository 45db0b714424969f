"""Standard respellings of a baseline, by name: what can be said of them from the contract alone. No JAX.

They are made from any function that keeps the contract, and whether one is right is not assumed: it is checked by numbers. A
gradient by hand cannot be made from a traced program, and is not offered.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_audit.contract import Audit

SCAN, WIDE, LAYOUT = "scan", "wide-first", "transposed"
SCAN_ROWS = (1024, 4096)
NARROW = frozenset({"bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"})
NOT_MADE = (
    "a gradient by hand cannot be derived from a traced program; where a baseline is a gradient, write it and name it"
)


@dataclass(frozen=True)
class Spelling:
    """A respelling: its kind, and the dimension and rows of a scan or the operand that is laid out anew."""

    kind: str
    dim: str = ""
    rows: int = 0
    operand: str = ""

    @property
    def name(self) -> str:
        if self.kind == SCAN:
            return f"{SCAN}({self.dim}, {self.rows})"
        return f"{LAYOUT}({self.operand})" if self.kind == LAYOUT else self.kind

    @property
    def how(self) -> str:
        """What it does, in words."""
        if self.kind == SCAN:
            return f"a scan over blocks of {self.rows} along {self.dim}, each held back by a barrier; results added or stacked"
        if self.kind == LAYOUT:
            return f"{self.operand} laid out in columns first, once"
        return "every narrow operand converted to float32 once, accumulated there, results rounded at the end"


def spellings_of(audit: Audit) -> list[Spelling]:
    """The respellings that the contract allows to try: scans over each leading dimension that is long enough for two blocks,
    wide accumulation where an operand may be narrow, and another layout of each matrix."""
    sizes = audit.declared_dims
    leading = dict.fromkeys(str(each.dims[0]) for each in audit.operands if each.dims and isinstance(each.dims[0], str))
    made = [Spelling(SCAN, dim=dim, rows=rows) for dim in leading for rows in SCAN_ROWS if sizes[dim] >= 2 * rows]
    dtypes = {choice for choices in audit.dtypes.values() for choice in choices} | {
        each.dtype for each in audit.operands
    }
    if dtypes & NARROW:
        made.append(Spelling(WIDE))
    made += [Spelling(LAYOUT, operand=each.name) for each in audit.operands if len(each.dims) == 2]
    return made
