"""Tables of what needed no device: kernels as they were read, programs as compilers took them. Static models, no times."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_audit.evidence import Evidence
from kernel_audit.records import CompiledRecord, KernelInspection
from kernel_audit.report.compiled import configuration_text, reason_text, seconds_text
from kernel_audit.report.inspection import ownership_text, traffic_text
from kernel_audit.report.phrases import counted

NOTHING = "\u2013"


@dataclass
class ReadRow:
    """A kernel as it was read; one row for all programs where it reads the same."""

    name: str
    grid: str
    ownership: str
    bytes: str
    padded: str
    buffers: str
    codes: list[str]
    programs: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CompiledRow:
    """A program as a target's compiler took it. Every figure is a text; a dash where there is none."""

    program: str
    verdict: str
    bundles: str
    spills: str
    bytes: str
    floor: str
    bound_by: str
    kernels: str
    reason: str


@dataclass(frozen=True)
class CompiledTable:
    """One target: its compilers, and a row a program, the candidate's first."""

    target: str
    compilers: str
    notes: list[str]
    rows: list[CompiledRow]


def read_rows(evidence: Evidence) -> list[ReadRow]:
    """Kernels of the candidate by what was read, in the order of the programs."""
    rows: dict[tuple[str, ...], ReadRow] = {}
    for each in evidence.kernels:
        row = _read_row(each)
        key = (row.name, row.grid, row.ownership, row.bytes, row.buffers, *row.codes)
        rows.setdefault(key, row).programs.append(each.program)
    return list(rows.values())


def _read_row(kernel: KernelInspection) -> ReadRow:
    share = f" ({kernel.padded_share:.1%})" if kernel.padded_share else ""
    return ReadRow(
        name=kernel.name,
        grid=" \u00d7 ".join("?" if size < 0 else str(size) for size in kernel.grid) or "none",
        ownership=ownership_text(kernel.ownership),
        bytes=traffic_text(kernel.bytes),
        padded=NOTHING if kernel.padded_elements is None else f"{kernel.padded_elements:,}{share}",
        buffers=f"{kernel.buffer_model_bytes:,}",
        codes=list(dict.fromkeys(each.code for each in kernel.findings)),
    )


def compiled_tables(evidence: Evidence) -> list[CompiledTable]:
    """A table a target, in the order of the records."""
    tables = []
    for target in dict.fromkeys(each.target for each in evidence.compiled):
        records = [each for each in evidence.compiled if each.target == target]
        versions = ", ".join(f"{name} {text}" for name, text in records[0].compilers.items())
        notes = list(dict.fromkeys(each.note for each in records if each.note))
        tables.append(CompiledTable(target, versions, notes, [_compiled_row(each) for each in records]))
    return tables


def _compiled_row(record: CompiledRecord) -> CompiledRow:
    part = f" in the step on {counted(record.devices, 'device')}" if record.part == "step" else ""
    choices = configuration_text({**record.mode, **record.configuration})
    spills = _count(record.spills) + (f" ({record.registers} registers)" if record.registers is not None else "")
    return CompiledRow(
        program=f"{record.side}{part}, {record.dtype}" + (f", {choices}" if choices != "-" else ""),
        verdict={True: "accepted", False: "refused", None: "not told"}[record.accepted],
        bundles=_count(record.bundles),
        spills=spills,
        bytes=_count(record.derived_bytes) if record.accepted else NOTHING,
        floor=seconds_text(record.floor_seconds) if record.accepted else NOTHING,
        bound_by=record.bound_by or NOTHING,
        kernels=", ".join(f"{each.name} {'found' if each.found else 'NOT FOUND'}" for each in record.kernels)
        or NOTHING,
        reason=reason_text(record.reason) if record.reason is not None else "",
    )


def _count(value: int | None) -> str:
    return NOTHING if value is None else f"{value:,}"


def read_texts(evidence: Evidence) -> list[str]:
    """The kernels that were read, one text each."""
    return [
        f"{row.name}, grid {row.grid}: {row.ownership}; bytes {row.bytes}; buffers by model {row.buffers} bytes"
        + (f"; {', '.join(row.codes)}" if row.codes else "")
        + f" [{counted(len(row.programs), 'program')}]"
        for row in read_rows(evidence)
    ]


def compiled_texts(evidence: Evidence) -> list[str]:
    """The programs that were compiled, one text each."""
    found = []
    for table in compiled_tables(evidence):
        for row in table.rows:
            told = (
                f"{row.bytes} bytes, floor {row.floor} ({row.bound_by}), spills {row.spills}"
                if not row.reason
                else row.reason
            )
            found.append(f"{table.target}, {row.program}: {row.verdict}; {told}")
    return found
