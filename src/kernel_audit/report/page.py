"""report.html: one page that carries everything it needs, with the decision first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernel_audit.evidence import Evidence
from kernel_audit.records import AWAIT, LEVELS, Cell, Decision, Finding
from kernel_audit.report import phrases
from kernel_audit.report.ablations import SCOPE as ABLATION_SCOPE
from kernel_audit.report.ablations import ablation_rows
from kernel_audit.report.complexity import complexity
from kernel_audit.report.decision_figure import DECISION, ON_TARGET
from kernel_audit.report.figures import AXIS, PRECISION_GAP, SCOPE, TITLE, precision_gaps
from kernel_audit.report.profile import profile_lines
from kernel_audit.report.receipts import receipt_rows
from kernel_audit.report.roofline import RooflineFigure, point_texts, rooflines
from kernel_audit.report.step_rows import ABOUT, step_rows_of
from kernel_audit.report.svg import embedded
from kernel_audit.report.tables import control_rows, counts_of, kernel_rows, matrix_table
from kernel_audit.report.without_device import compiled_tables, read_rows
from kernel_audit.report.workload import aggregation_text, drawing_lines, partition_rows, processes_text, step_rows

TEMPLATES = Path(__file__).parent / "templates"
_MOST_SHOWN = 40  # cells that need a look, before the rest is folded away
_MOST_KERNELS = 6


def render_page(
    evidence: Evidence,
    decision: Decision,
    figures: Mapping[str, bytes],
    sources: Mapping[str, bytes] | None = None,
) -> bytes:
    """The page as UTF-8. It loads nothing, runs nothing and can be printed.

    `figures` are those of `all_figures`, `sources` the judged sources by label: without them
    their lines are not counted. The same records give the same bytes. No text of a record can become markup.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(choice=phrases.choice_text, number=phrases.number, short=_short, word=_word)
    drawing = figures.get(f"{PRECISION_GAP}.svg")
    view = _view(evidence, decision, sources)
    view["drawing"] = Markup(embedded(drawing, view["figure_alt"])) if drawing else None
    for name, alt in (
        (("partition", "\n".join(view["workload"]["drawing"])), ("aggregation", "")) if evidence.workload else ()
    ):
        picture = figures.get(f"{name}.svg")
        texts = alt or "; ".join(view["workload"]["aggregation"])
        view["workload"][f"{name}_svg"] = Markup(embedded(picture, texts)) if picture else None
    view["decision_drawing"] = None
    if view["receipts"] and (drawn := figures.get(f"{DECISION}.svg")):
        view["decision_drawing"] = Markup(embedded(drawn, f"Ratios with their intervals. {ON_TARGET}."))
    view["rooflines"] = [_roofline(each, figures.get(f"{each.name}.svg")) for each in rooflines(evidence)]
    return environment.get_template("report.html.j2").render(view).encode()


def _view(evidence: Evidence, decision: Decision, sources: Mapping[str, bytes] | None) -> dict[str, Any]:
    """Everything that the template shows, as plain values."""
    title, meaning = phrases.headline(decision.decision)
    look = [each for each in evidence.cells if phrases.needs_a_look(each)]
    gaps = precision_gaps(evidence)
    kernels = kernel_rows(evidence)
    read = read_rows(evidence)
    return {
        "audit": evidence.frozen.audit,
        "plan": evidence.frozen.plan,
        "environment": evidence.environment,
        "decision": decision,
        "title": title,
        "meaning": meaning,
        "next_label": "What would settle it" if decision.decision == AWAIT else "Next",
        "tone": {"keep": "good", "revise": "bad", None: "bad"}.get(decision.decision, "odd"),
        "findings": [_finding(each) for each in decision.findings],
        "levels": [_level(name, decision) for name in LEVELS],
        "verdict_tones": phrases.VERDICT_TONES,
        "matrix": matrix_table(evidence),
        "counts": counts_of(evidence.cells),
        "meanings": [
            phrases.OUTCOME_MEANINGS[each] for each in _outcomes(evidence) if each in phrases.OUTCOME_MEANINGS
        ],
        "look": [_look(each) for each in look[:_MOST_SHOWN]],
        "look_more": [_look(each) for each in look[_MOST_SHOWN:]],
        "cells": evidence.cells,
        "controls": control_rows(evidence),
        "refusals": evidence.refusals,
        "kernels": kernels[:_MOST_KERNELS],
        "kernels_more": kernels[_MOST_KERNELS:],
        "read": read[:_MOST_KERNELS],
        "read_more": read[_MOST_KERNELS:],
        "compiled": compiled_tables(evidence),
        "not_compiled": [each for each in evidence.environment.not_run if "not compiled:" in each],
        "gaps": gaps,
        "figure_title": TITLE,
        "figure_axis": AXIS,
        "figure_scope": SCOPE,
        "figure_alt": _figure_alt(gaps.rows),
        "left_out": _left_out(evidence),
        "workload": _workload(evidence),
        "profile": profile_lines(evidence.profile) if evidence.profile is not None else [],
        "receipts": receipt_rows(evidence),
        "ablations": ablation_rows(evidence),
        "ablation_scope": ABLATION_SCOPE,
        "decision_scope": ON_TARGET,
        "steps_beside": step_rows_of(evidence),
        "steps_about": ABOUT,
        "complexity": complexity(evidence, sources),
    }


def _roofline(data: RooflineFigure, picture: bytes | None) -> dict[str, Any]:
    """A figure with its data; no drawing where there is no point, or none was handed over."""
    from markupsafe import Markup

    texts = "; ".join(point_texts(data))
    return {"data": data, "drawing": Markup(embedded(picture, texts)) if picture and data.points else None}


def _workload(evidence: Evidence) -> dict[str, Any] | None:
    """What the section on the complete step shows."""
    record = evidence.workload
    if record is None:
        return None
    return {
        "record": record,
        "rows": step_rows(record),
        "partitions": partition_rows(record),
        "drawing": drawing_lines(record),
        "aggregation": [aggregation_text(each) for each in record.aggregation],
        "processes": [processes_text(each) for each in record.processes],
    }


def _outcomes(evidence: Evidence) -> list[str]:
    return [each.outcome for each in counts_of(evidence.cells)]


def _finding(finding: Finding) -> dict[str, Any]:
    return {"finding": finding, "shown": finding.records[:5], "folded": finding.records[5:]}


def _level(name: str, decision: Decision) -> dict[str, Any]:
    text = phrases.level_text(decision, name)
    return {
        "name": name,
        "meaning": phrases.LEVEL_WORDS[name],
        "text": text or phrases.NOTHING_OBSERVED,
        "observed": bool(text),
    }


def _look(cell: Cell) -> dict[str, Any]:
    return {"cell": cell, "tone": phrases.outcome_tone(cell.outcome), "broken": phrases.broken_promises(cell)}


def _figure_alt(rows: list[Any]) -> str:
    parts = [f"{row.fixture} in {row.dtype}: {phrases.number(row.representation_gap_max)}" for row in rows]
    return f"Bars: {AXIS}. " + "; ".join(parts) + f". Scope: {SCOPE}."


def _left_out(evidence: Evidence) -> list[tuple[str, list[str]]]:
    """What was left out, grouped by reason in the order of its first mention."""
    found: dict[str, list[str]] = {}
    for each in evidence.frozen.plan.left_out:
        found.setdefault(each.why, []).append(each.what)
    return list(found.items())


def _short(digest: str) -> str:
    """ "sha256:0123456789ab" of a digest: enough to tell two apart by eye."""
    kind, colon, rest = digest.partition(":")
    return f"{kind}:{rest[:12]}" if colon else digest[:12]


def _word(value: bool | None) -> str:
    return {True: "yes", False: "no", None: "\u2013"}[value]
