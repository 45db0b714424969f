"""Tables of the report, as plain values: the matrix, the controls, the refusals and the kernels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from kernel_audit.evidence import Evidence
from kernel_audit.records import Cell, Control
from kernel_audit.report.phrases import dtype_order, in_order, outcome_tone, outcome_word, shape_text


@dataclass(frozen=True)
class Count:
    """How many cells of one outcome, with its word and tone."""

    outcome: str
    word: str
    tone: str
    count: int


@dataclass(frozen=True)
class MatrixRow:
    """One shape; `counts` are in the order of the columns, empty where no cell was planned."""

    shape: str
    counts: list[list[Count]]


@dataclass(frozen=True)
class MatrixTable:
    """Cells counted by outcome: shapes down, (dtype, engine) across, with a last row of totals."""

    columns: list[tuple[str, str]]
    rows: list[MatrixRow]
    totals: MatrixRow


def matrix_table(evidence: Evidence) -> MatrixTable:
    """The cells of an audit, to be scanned: shapes by number of elements, small ones first."""
    audit = evidence.frozen.audit
    order = dtype_order(evidence)
    columns = sorted({(each.dtype, each.engine) for each in evidence.cells}, key=lambda key: (order[key[0]], key))
    grouped: dict[tuple[tuple[int, ...], str], list[Cell]] = {}
    for cell in evidence.cells:
        sizes = tuple(cell.dims[each.name] for each in audit.dimensions if each.name in cell.dims)
        grouped.setdefault((sizes, shape_text(audit, cell.dims)), []).append(cell)
    ordered = sorted(grouped, key=lambda key: (_elements(key[0]), key))
    rows = [MatrixRow(key[1], _by_column(columns, grouped[key])) for key in ordered]
    return MatrixTable(columns, rows, MatrixRow("all shapes", _by_column(columns, evidence.cells)))


def _elements(sizes: tuple[int, ...]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _by_column(columns: list[tuple[str, str]], cells: list[Cell]) -> list[list[Count]]:
    return [counts_of([each for each in cells if (each.dtype, each.engine) == column]) for column in columns]


def counts_of(cells: list[Cell]) -> list[Count]:
    """Cells counted by outcome, agreeing ones first."""
    found = Counter(each.outcome for each in cells)
    return [Count(name, outcome_word(name, count), outcome_tone(name), count) for name, count in in_order(found)]


@dataclass
class ControlRow:
    """A control over all its fixtures. `reasons` count why it was not applicable, `wrong` says where it failed."""

    name: str
    expected: str
    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def control_rows(evidence: Evidence) -> list[ControlRow]:
    """One row a control, those that must be accepted first; the order of the records otherwise."""
    rows: dict[str, ControlRow] = {}
    for each in evidence.controls:
        row = rows.setdefault(each.name, ControlRow(each.name, each.expected))
        row.outcomes[each.outcome] += 1
        if each.outcome == "not-applicable":
            row.reasons[each.reason] += 1
        elif on_the_wrong_side(each):
            row.wrong.append(f"{each.outcome} on {each.fixture}, {each.dtype}")
    return sorted(rows.values(), key=lambda row: row.expected != "accepted")


def on_the_wrong_side(control: Control) -> bool:
    """Whether a control says that the audit's check cannot be trusted."""
    return control.outcome not in (control.expected, "not-applicable")


@dataclass
class KernelRow:
    """A kernel found in the candidate's programs: the same body may occur in many of them."""

    name: str
    primitive: str
    digest: str
    grids: list[str] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    allocations: list[str] = field(default_factory=list)
    programs: int = 0


def kernel_rows(evidence: Evidence) -> list[KernelRow]:
    """Kernels of the candidate, one row a digest."""
    rows: dict[str, KernelRow] = {}
    for program in evidence.programs:
        if program.side != "candidate":
            continue
        for kernel in program.kernels:
            row = rows.setdefault(kernel.digest, KernelRow(kernel.name, kernel.primitive, kernel.digest))
            row.programs += 1
            _add(row.grids, _sizes(kernel.grid))
            _add(row.blocks, ", ".join(_sizes(each) for each in kernel.blocks))
            _add(row.allocations, ", ".join(_sizes(each) for each in kernel.allocations))
    return list(rows.values())


def _sizes(shape: list[int]) -> str:
    return "(" + ", ".join("?" if size < 0 else str(size) for size in shape) + ")"


def _add(texts: list[str], text: str) -> None:
    if text and text not in texts:
        texts.append(text)
