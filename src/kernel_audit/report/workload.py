"""The complete step in the report: what was checked on which partition, the partition drawn, the aggregation exhibit."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from kernel_audit.evidence import Evidence
from kernel_audit.records import Aggregation, ProcessesRun, StepPartition, StepRun, WorkloadRecord, encode
from kernel_audit.report.partition_drawing import partition_svg, partition_texts

DRAWN = "data=8/13"
PARTITION, AGGREGATION = "partition", "aggregation"
NOTHING = "\u2013"
_WRONG, _RIGHT = "#a3211c", "#3b6ea8"


@dataclass(frozen=True)
class StepRow:
    """One side on all partitions of one step. Errors are the largest of all updates and partitions."""

    side: str
    runs: str
    verdict: str
    loss: str
    gradient: str
    state: str
    codes: list[str]
    check_vma: str


@dataclass(frozen=True)
class PartitionRow:
    """One partition, all sides: the largest errors of each kind."""

    name: str
    counts: str
    loss: str
    gradient: str
    state: str
    collectives: str
    verdict: str


def step_rows(record: WorkloadRecord) -> list[StepRow]:
    """A row a side and dtype, in the order of the runs."""
    groups: dict[str, list[StepRun]] = {}
    for each in record.runs:
        choices = ", ".join(f"{key}={value}" for key, value in each.configuration.items())
        own = " in its own step" if each.step != "workload" else ""
        groups.setdefault(f"{each.side}{own}, {each.dtype}" + (f", {choices}" if choices else ""), []).append(each)
    return [_step_row(name, runs) for name, runs in groups.items()]


def _step_row(name: str, runs: list[StepRun]) -> StepRow:
    right = sum(each.outcome == "right" for each in runs)
    told = sorted({each.check_vma for each in runs if each.check_vma})
    return StepRow(
        side=name,
        runs=f"{right} of {len(runs)} right",
        verdict="right" if right == len(runs) else "wrong",
        loss=_largest(runs, "loss"),
        gradient=_largest(runs, "gradient"),
        state=_largest(runs, "state"),
        codes=list(dict.fromkeys(code for each in runs for code in each.codes)),
        check_vma="; ".join(told) or NOTHING,
    )


def partition_rows(record: WorkloadRecord) -> list[PartitionRow]:
    """A row a partition."""
    rows = []
    for partition in record.partitions:
        runs = [each for each in record.runs if each.partition == partition.name]
        found = list(dict.fromkeys(each.kind for run in runs[:1] for each in run.collectives))
        rows.append(
            PartitionRow(
                name=partition.name,
                counts=_counts_text(partition),
                loss=_largest(runs, "loss"),
                gradient=_largest(runs, "gradient"),
                state=_largest(runs, "state"),
                collectives=", ".join(found) or NOTHING,
                verdict="right" if all(each.outcome == "right" for each in runs) else "wrong",
            )
        )
    return rows


def _counts_text(partition: StepPartition) -> str:
    counts = partition.counts
    text = f"{len(counts)} x {counts[0]}" if len(set(counts)) == 1 and len(counts) > 1 else " ".join(map(str, counts))
    return text


def _largest(runs: list[StepRun], name: str) -> str:
    values = [getattr(each, name) for run in runs for each in run.errors]
    known = [each for each in values if each is not None]
    return f"{max(known):.1e}" if known else NOTHING


def drawn_run(record: WorkloadRecord) -> tuple[StepPartition, StepRun] | None:
    """What the drawing shows: the workload's own step on thirteen examples over eight devices, or the first that there is."""
    runs = [each for each in record.runs if each.operands]
    chosen = next((each for each in runs if each.partition == DRAWN), runs[0] if runs else None)
    if chosen is None:
        return None
    return next(each for each in record.partitions if each.name == chosen.partition), chosen


def aggregation_text(each: Aggregation) -> str:
    """ "3 + 5: the plain mean of local means is off by 16.1 % in the loss ...: unweighted-means; by counts 1.6e-16: passes"."""
    verdict = ", ".join(each.unweighted_codes) or "passes: equal counts hide it"
    repaired = ", ".join(each.weighted_codes) or "passes"
    return (
        f"{' + '.join(map(str, each.counts))}: plain mean of local means off by {each.unweighted_loss_error:.1%} (loss) and "
        f"{each.unweighted_gradient_error:.1%} (gradient): {verdict}; weighted with the counts "
        f"{each.weighted_gradient_error:.1e}: {repaired}"
    )


def processes_text(each: ProcessesRun) -> str:
    """One run over several processes in a line."""
    seen = f"{each.processes} processes of {each.devices_each} devices, {each.side} on {each.partition}"
    worst = max((error.loss for error in each.errors if error.loss is not None), default=None)
    told = f", loss within {worst:.1e}" if worst is not None else f": {each.note}" if each.note else ""
    return f"{seen}: {each.outcome} after {each.seconds:.1f} s (deadline {each.deadline_s:g} s){told}"


def workload_texts(record: WorkloadRecord) -> list[str]:
    """The section as lines of text, the drawing included."""
    lines = [
        f"{record.step}, {record.updates} updates, bound {record.within:g}; reference {record.host or 'none'}",
        f"data: {' '.join(record.reference.rule.split())}; seed {record.seed}",
        f"precision: arithmetic {record.compute}, parameters {record.parameters}, results {record.output}",
        record.platform,
    ]
    lines += [
        f"{row.side}: {row.runs}; loss {row.loss}, gradient {row.gradient}, state {row.state}"
        + (f"; {', '.join(row.codes)}" if row.codes else "")
        for row in step_rows(record)
    ]
    lines += [aggregation_text(each) for each in record.aggregation]
    lines += [processes_text(each) for each in record.processes]
    return lines


def drawing_lines(record: WorkloadRecord) -> list[str]:
    """The partition drawn in characters."""
    chosen = drawn_run(record)
    return partition_texts(*chosen) if chosen is not None else []


def workload_figures(evidence: Evidence) -> dict[str, bytes]:
    """ "partition" and "aggregation", each as SVG, PNG and JSON; empty without a workload."""
    record = evidence.workload
    if record is None:
        return {}
    figures: dict[str, bytes] = {}
    if (chosen := drawn_run(record)) is not None:
        partition, run = chosen
        data = {"partition": partition, "operands": run.operands, "collectives": run.collectives}
        figures |= _figure(PARTITION, partition_svg(partition, run), data)
    if record.aggregation:
        figures |= _figure(AGGREGATION, aggregation_svg(record.aggregation), record.aggregation)
    return figures


def _figure(name: str, svg: bytes, data: Any) -> dict[str, bytes]:
    import vl_convert

    return {
        f"{name}.svg": svg,
        f"{name}.png": vl_convert.svg_to_png(svg.decode(), scale=2.0),
        f"{name}.json": encode(data),
    }


def aggregation_svg(cases: list[Aggregation]) -> bytes:
    """Bars: by how much the gradient is off, joined without and with counts, for each partition."""
    left, bar, step = 190, 18, 56
    largest = max(each.unweighted_gradient_error for each in cases) or 1.0
    width, height = left + 420, 60 + step * len(cases)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="12">',
        "<title>Error of the gradient joined from means of shards</title>",
        '<text x="10" y="20" font-size="14">Error of the gradient joined from means of shards</text>',
        '<text x="10" y="38" font-size="11">relative to float64; red: plain mean, blue: weighted with the counts</text>',
    ]
    for index, each in enumerate(cases):
        top = 54 + index * step
        parts.append(f'<text x="10" y="{top + 22}">{escape(" + ".join(map(str, each.counts)))}</text>')
        rows = ((each.unweighted_gradient_error, _WRONG), (each.weighted_gradient_error, _RIGHT))
        for place, (error, colour) in enumerate(rows):
            y = top + place * (bar + 2)
            size = max(1.0, 300 * error / largest)
            label = f"{error:.1%}" if error >= 1e-3 else f"{error:.1e}"
            parts.append(f'<rect x="{left}" y="{y}" width="{size:.1f}" height="{bar}" fill="{colour}"/>')
            parts.append(f'<text x="{left + size + 6:.1f}" y="{y + 13}" font-size="11">{label}</text>')
    return ("\n".join(parts) + "\n</svg>\n").encode()
