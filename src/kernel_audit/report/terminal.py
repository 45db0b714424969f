"""The report as plain text: the end of `run`, and the whole of it for `report`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from kernel_audit.evidence import Evidence
from kernel_audit.records import LEVELS, Cell, Decision, Finding
from kernel_audit.report.ablations import ablation_texts
from kernel_audit.report.figures import SCOPE, precision_gaps
from kernel_audit.report.phrases import (
    LEVEL_WORDS,
    NOTHING_OBSERVED,
    broken_promises,
    counted,
    headline,
    in_order,
    level_text,
    needs_a_look,
    number,
    outcome_word,
)
from kernel_audit.report.profile import profile_lines
from kernel_audit.report.receipts import receipt_texts
from kernel_audit.report.roofline import not_drawn_texts
from kernel_audit.report.step_rows import step_row_texts
from kernel_audit.report.tables import control_rows, matrix_table
from kernel_audit.report.without_device import compiled_texts, read_texts
from kernel_audit.report.workload import drawing_lines, workload_texts

WIDTH = 100
_LABEL = 11
_MOST_FINDINGS = 8
_MOST_NOT_RUN = 4
_MOST_CELLS = 40


def summary_lines(evidence: Evidence, decision: Decision, *, page: str | None) -> list[str]:
    """The end of `run`, at most WIDTH wide: decision, why, counts, findings, what was not run, what would settle it.

    `page` is the path of the report as the user should see it, None where no bundle was written. No line can carry a
    control character.
    """
    lines = _labelled("decision", decision.decision or "none: " + headline(None)[1])
    lines += _labelled("why", decision.summary)
    lines += _labelled("cells", _cells_text(evidence, decision))
    lines += _labelled("level", f"{decision.level}: {LEVEL_WORDS.get(decision.level, 'unknown')}")
    lines += _several("findings", [finding_text(each) for each in decision.findings], _MOST_FINDINGS, "none")
    lines += _several("not run", evidence.environment.not_run, _MOST_NOT_RUN, "nothing was left out")
    lines += _labelled("next", decision.next_command or "nothing is open", wrap=False)
    lines += _labelled("page", page, wrap=False) if page is not None else []
    return lines


def full_text(evidence: Evidence, decision: Decision) -> str:
    """The whole report as plain text, for a terminal without a browser."""
    audit = evidence.frozen.audit
    title, meaning = headline(decision.decision)
    blocks = [
        [*_wrapped(f"{audit.name}: {title}"), *_wrapped(meaning)],
        _labelled("decision", decision.decision or "none")
        + _labelled("why", decision.summary)
        + _labelled("next", decision.next_command or "nothing is open", wrap=False),
        _section("Reasons", [finding_text(each) + _records_text(each) for each in decision.findings], "No finding."),
        _section("What was observed, by evidence level", _level_texts(decision)),
        _section("What did not run", evidence.environment.not_run, "Nothing was left out."),
        _section("Review", [f"{each.name}: {each.verdict}. {each.text}" for each in decision.review]),
        _section("Matrix", [_cells_text(evidence, decision), *_matrix_texts(evidence)]),
        _section("Cells to look at", _cell_texts(evidence), "None: every judged cell agrees."),
        _section("Controls", _control_texts(evidence), "No control was run."),
        _section("Refusals", _refusal_texts(evidence), "No refusal is promised."),
        _section(f"Precision gap ({SCOPE})", _gap_texts(evidence), "No cell has a gap."),
        _section("Kernels, as they were read", read_texts(evidence), "No kernel was read."),
        _section("Compiled for described devices: nothing ran", compiled_texts(evidence), "Nothing was compiled."),
        *_workload_blocks(evidence),
        *_profile_blocks(evidence),
        *([_section("Receipts", _receipt_lines(evidence), "")] if evidence.receipts else []),
        *([_section("Ablations", texts)] if (texts := ablation_texts(evidence)) else []),
        _section("Prediction", [f"predicted: {audit.prediction or 'nothing'}", f"found: {decision.summary}"]),
    ]
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _workload_blocks(evidence: Evidence) -> list[list[str]]:
    """The complete step, with its partition drawn; nothing for an audit without a workload."""
    record = evidence.workload
    if record is None:
        return []
    title = "The complete step on logical devices: values, no times"
    return [_section(title, workload_texts(record)), ["A partition, drawn", *drawing_lines(record)]]


def _receipt_lines(evidence: Evidence) -> list[str]:
    return [*receipt_texts(evidence), *step_row_texts(evidence), *not_drawn_texts(evidence)]


def _profile_blocks(evidence: Evidence) -> list[list[str]]:
    """The profile; its lines are laid out in columns already."""
    if evidence.profile is None:
        return []
    return [
        ["Profile of the complete step", *(f"  {_plain(line)}".rstrip() for line in profile_lines(evidence.profile))]
    ]


def finding_text(finding: Finding) -> str:
    """ "kernel: values-differ. <text> (any target)"."""
    return f"{finding.subject}: {finding.code}. {finding.text} ({finding.scope})"


def _records_text(finding: Finding) -> str:
    if not finding.records:
        return ""
    shown = ", ".join(finding.records[:3])
    more = f" and {len(finding.records) - 3} more" if len(finding.records) > 3 else ""
    return f" [{shown}{more}]"


def _cells_text(evidence: Evidence, decision: Decision) -> str:
    planned = len(evidence.frozen.plan.cells)
    parts = [f"{count} {outcome_word(name, count)}" for name, count in in_order(decision.counts)]
    return f"{len(evidence.cells)} of {planned} planned: {', '.join(parts) or 'none'}"


def _level_texts(decision: Decision) -> list[str]:
    return [f"{level}: {level_text(decision, level) or NOTHING_OBSERVED}" for level in LEVELS]


def _matrix_texts(evidence: Evidence) -> list[str]:
    table = matrix_table(evidence)
    texts = []
    for (dtype, engine), counts in zip(table.columns, table.totals.counts, strict=True):
        words = ", ".join(f"{each.count} {each.word}" for each in counts)
        texts.append(f"{dtype}, {engine}: {words}")
    return texts


def _cell_texts(evidence: Evidence) -> list[str]:
    cells = [each for each in evidence.cells if needs_a_look(each)]
    texts = [cell_text(each) for each in cells[:_MOST_CELLS]]
    return texts + ([f"and {len(cells) - _MOST_CELLS} more"] if len(cells) > _MOST_CELLS else [])


def cell_text(cell: Cell) -> str:
    """A cell that needs a look, on one line: outcome, numbers, first differing position, note."""
    parts = [f"{cell.id}: {cell.outcome}" + (f", {cell.code}" if cell.code else "")]
    if cell.differing:
        parts.append(f"{counted(cell.differing, 'element')} off, at most {number(cell.kernel_error_max)}")
    if cell.differing_first:
        first = cell.differing_first[0]
        parts.append(f"first at {first.position}: {first.actual} instead of {first.expected}")
    parts += broken_promises(cell)
    if cell.note:
        parts.append(cell.note)
    return "; ".join(parts)


def _control_texts(evidence: Evidence) -> list[str]:
    texts = []
    for row in control_rows(evidence):
        outcomes = ", ".join(f"{count} {name}" for name, count in sorted(row.outcomes.items()))
        wrong = f"; WRONG SIDE: {row.wrong[0]}" if row.wrong else ""
        texts.append(f"{row.name}: must be {row.expected}: {outcomes}{wrong}")
    return texts


def _refusal_texts(evidence: Evidence) -> list[str]:
    return [f"{each.name}: {each.outcome}" + (f", {each.raised}" if each.raised else "") for each in evidence.refusals]


def _gap_texts(evidence: Evidence) -> list[str]:
    return [
        f"{row.fixture}, {row.dtype}: "
        + ("no finite element" if row.representation_gap_max is None else repr(row.representation_gap_max))
        for row in precision_gaps(evidence).rows
    ]


def _labelled(label: str, text: str, *, wrap: bool = True) -> list[str]:
    """The text beside its label, wrapped; a command or a path stays on one line, so that it can be copied."""
    lines = _wrapped(text, WIDTH - _LABEL) if wrap else [_plain(text)]
    return [f"{label if index == 0 else '':<{_LABEL}}{line}" for index, line in enumerate(lines)]


def _several(label: str, texts: list[str], most: int, none: str) -> list[str]:
    if not texts:
        return _labelled(label, none)
    shown = list(texts[:most])
    if len(texts) > most:
        shown.append(f"and {len(texts) - most} more")
    lines = [line for index, text in enumerate(shown) for line in _labelled(label if index == 0 else "", text)]
    return lines


def _section(title: str, texts: Iterable[str], none: str = "Nothing.") -> list[str]:
    lines = [title]
    for text in texts:
        first, *rest = _wrapped(text, WIDTH - 4)
        lines += [f"  - {first}", *(f"    {line}" for line in rest)]
    return lines if len(lines) > 1 else [title, f"  {none}"]


def _wrapped(text: str, width: int = WIDTH) -> list[str]:
    return textwrap.wrap(_plain(text), width, break_long_words=False, break_on_hyphens=False) or [""]


def _plain(text: str) -> str:
    """One line without control characters: what a candidate wrote must not steer a terminal."""
    return "".join(each if each.isprintable() else " " if each.isspace() else f"\\u{ord(each):04x}" for each in text)
