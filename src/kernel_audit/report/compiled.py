"""What `kernel-audit compile` prints: one line a program, and what its author can act on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from kernel_audit.records import CompiledRecord, CompiledReport, CompilerReason, FamilyMember, Finding, Respelling

_HEADER = ("", "dtype", "configuration", "bundles", "spills", "bytes", "floor", "bound by")


def compiled_lines(report: CompiledReport) -> Iterator[str]:
    """The report as lines of text."""
    yield f"{report.audit}: compiled for described devices; nothing was run, no time was measured"
    for target, records in _by_target(report.records):
        yield ""
        yield from _target_lines(target, records)
    for target, text in report.not_compiled.items():
        yield ""
        yield f"{target}: {text}"
    if report.family:
        yield ""
        yield from _family_lines(report.family)
    if report.respellings:
        yield ""
        yield from _respelling_lines(report.respellings)
    for text in report.notes:
        yield f"note: {text}"
    if report.findings:
        yield ""
    for finding in report.findings:
        yield _finding_line(finding)


def _by_target(records: list[CompiledRecord]) -> Iterator[tuple[str, list[CompiledRecord]]]:
    order = list(dict.fromkeys(each.target for each in records))
    for target in order:
        yield target, [each for each in records if each.target == target]


def _target_lines(target: str, records: list[CompiledRecord]) -> Iterator[str]:
    versions = ", ".join(f"{name} {text}" for name, text in records[0].compilers.items())
    yield f"{target}   {versions}"
    groups = [(key, list(each)) for key, each in groupby(records, key=lambda each: (each.part, each.side))]
    for (part, side), members in groups:
        where = (
            f" in the complete step on {members[0].devices} devices ({members[0].topology})" if part == "step" else ""
        )
        yield f"  {side}{where}"
        yield from _table([_HEADER, *[_row(each) for each in members]])
        yield from _beside(members)
    notes = dict.fromkeys(each.note for each in records if each.note)
    yield from (f"  note: {text}" for text in notes)


def _row(record: CompiledRecord) -> tuple[str, ...]:
    if not record.accepted:
        return _verdict(record), record.dtype, configuration_text(record.configuration), *_refused(record.reason)
    spills = _count(record.spills)
    if record.registers is not None:
        spills += f" ({record.registers} registers)"
    return (
        _verdict(record),
        record.dtype,
        configuration_text(record.configuration),
        _count(record.bundles),
        spills,
        f"{record.derived_bytes:,}" if record.derived_bytes is not None else "cannot tell",
        seconds_text(record.floor_seconds),
        record.bound_by or "-",
    )


def _verdict(record: CompiledRecord) -> str:
    return {True: "accepted", False: "refused", None: "not told"}[record.accepted]


def _refused(reason: CompilerReason | None) -> tuple[str, ...]:
    return (reason_text(reason),) if reason is not None else ("",)


def reason_text(reason: CompilerReason) -> str:
    """A refusal in a line: memory with use and limit, or the operation, where it stands, and the compiler's words."""
    parts = []
    if reason.used_bytes is not None and reason.limit_bytes is not None:
        parts.append(f"{reason.memory}: {reason.used_bytes:,} of {reason.limit_bytes:,} bytes")
    if reason.operation:
        parts.append(reason.operation)
    parts.append(reason.text)
    return f"{reason.stage}: " + "; ".join(parts) + (f" [{reason.source}]" if reason.source else "")


def _beside(members: list[CompiledRecord]) -> Iterator[str]:
    """What holds for most programs of one side, once."""
    accepted = [each for each in members if each.accepted]
    if not accepted:
        return
    first = accepted[0]
    calls = ", ".join(
        f"{each.name} {'found' if each.found else 'NOT FOUND'}" for each in first.kernels
    )  # of one program: the others are told by findings
    counts = f"{first.fusions} fusions, {first.copies} copies, {len(first.collectives)} collectives"
    yield f"    of the first: {counts}" + (f"; kernels: {calls}" if calls else "")
    for each in first.collectives:
        yield f"    {each.kind}: {each.payload_bytes:,} bytes from each device, groups {each.replica_groups}"
    for each in first.around:
        moved = f"{each.moved_bytes:,} bytes" if each.moved_bytes is not None else "bytes cannot be told"
        yield f"    not fused with the kernel, {each.side} it: {each.opcode} {each.operation}, {moved}"


def _family_lines(family: list[FamilyMember]) -> Iterator[str]:
    yield "accepted family, by probe: what these compilers take of the unguarded builder and of each candidate"
    for (target, builder), members in groupby(family, key=lambda each: (each.target, each.builder)):
        yield f"  {target}   {builder}"
        rows = []
        for each in members:
            outcome = "accepted" if each.accepted else "refused" if each.accepted is False else "not told"
            if each.reason is not None and each.reason.stage == "guard":
                outcome = "its own guard"
            elif each.reason is not None and each.reason.stage == "candidate":
                outcome = "raised"
            why = reason_text(each.reason) if each.reason is not None else ""
            rows.append((outcome, each.dtype, configuration_text(each.configuration), each.changed, why))
        yield from _table(rows)


def _respelling_lines(respellings: list[Respelling]) -> Iterator[str]:
    yield "respelled baselines, by floor (a static model; offered, not measured)"
    rows = []
    for each in respellings:
        record = each.record
        right = {True: "right", False: "WRONG", None: "not checked"}[each.correct]
        floor = seconds_text(record.floor_seconds) if record is not None else "-"
        where = f"{record.target}, {record.dtype}" if record is not None else "-"
        rows.append((floor, right, where, each.of, each.name, each.note or each.how))
    yield from _table(rows)


def _finding_line(finding: Finding) -> str:
    return f"{finding.code}: {finding.text}  [{finding.scope}]"


def _table(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Rows in columns; the last entry of a row may be as long as it likes."""
    columns = max(len(row) for row in rows)
    widths = [max((len(row[i]) for row in rows if len(row) > i + 1), default=0) for i in range(columns)]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row[:-1], widths, strict=False)]
        yield ("    " + "  ".join([*cells, row[-1]])).rstrip()


def configuration_text(configuration: dict[str, Any]) -> str:
    """ "block=(8, 128) buffers=2"."""
    words = [f"{key}={tuple(value) if isinstance(value, list) else value}" for key, value in configuration.items()]
    return " ".join(words) or "-"


def seconds_text(value: float | None) -> str:
    """Seconds with a unit that keeps three digits."""
    if value is None:
        return "cannot tell"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
