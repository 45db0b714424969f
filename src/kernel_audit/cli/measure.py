"""`kernel-audit measure`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernel_audit.cli.options import json_option

if TYPE_CHECKING:
    from kernel_audit.conduct.measuring import Measured, PlannedMeasurement
    from kernel_audit.records import Receipt


@click.command("measure")
@click.argument("audit", metavar="AUDIT")
@click.option("--target", type=click.Choice(["tpu", "gpu", "cpu"]), required=True, help="The device that is here.")
@click.option("--out", type=click.Path(path_type=Path), help="Folder of the receipts; receipts/TARGET where not given.")
@click.option("--dry-run", is_flag=True, help="List what would be measured, and for about how long; measures nothing.")
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="NAME=SIZES",
    help="Sizes of a dimension: n=2**14:2**22, doubling, or d=128,512; repeatable.",
)
@click.option(
    "--processes", type=click.IntRange(8, 64), default=10, show_default=True, help="Fresh processes of a session."
)
@click.option(
    "--pairs", type=click.IntRange(40, 100000), help="Pairs of a session; by a pilot of the noise where not given."
)
@click.option("--candidate", metavar="PLACE", help="Measure this function instead: file.py:name or module:name.")
@json_option
def command(
    audit: str,
    target: str,
    out: Path | None,
    dry_run: bool,
    sweeps: tuple[str, ...],
    processes: int,
    pairs: int | None,
    candidate: str | None,
    as_json: bool,
) -> None:
    """Measure an audit on the device that is here: correct there, and how fast against its baselines. Writes receipts.

    A receipt holds every sample, losses too. Without the target nothing runs and nothing is simulated instead (exit code 2);
    --target cpu is for programs without a kernel, and claims nothing about a TPU or GPU. Exit code 1 where something failed on
    the target: that is recorded as well.
    """
    from kernel_audit.cli.progress import shown_progress
    from kernel_audit.conduct import Question
    from kernel_audit.conduct.measuring import MeasureQuestion, measure, plan, write_receipts
    from kernel_audit.measure import Amount
    from kernel_audit.records import encode

    asked = MeasureQuestion(
        Question(audit=audit, candidate=candidate), target, tuple(sweeps), Amount(processes=processes, pairs=pairs)
    )
    if dry_run:
        found = plan(asked)
        click.echo(encode(found).decode() if as_json else "\n".join(_plan_lines(found)))
        return
    with shown_progress(quiet=as_json) as progress:
        measured = measure(asked, progress)
    places = write_receipts(measured.receipts, out or Path("receipts") / target)
    if measured.failed:
        for receipt in measured.receipts:
            for failure in receipt.failures:
                click.echo(f"{failure.stage}: {failure.role} {failure.name}: {failure.what}: {failure.got}", err=True)
    if as_json:
        click.echo(encode({"receipts": measured.receipts, "sweeps": measured.lines}).decode())
    else:
        for line in _lines(measured, places):
            click.echo(line)
    sys.exit(1 if measured.failed else 0)


def _plan_lines(found: PlannedMeasurement) -> list[str]:
    lines = [f"would measure {found.audit} on {found.needs}; nothing was run"]
    twins = f", {len(found.ablations)} ablations" if found.ablations else ""
    lines += [
        f"  {each}: {found.candidates} candidates, {len(found.baselines)} baselines{twins}"
        for each in found.comparisons
    ]
    lines.append(f"  {found.processes} processes a session; pairs: {found.pairs}")
    return [*lines, f"  about {found.about_s:.0f} s; may claim {found.may_claim}"]


def _lines(measured: Measured, places: list[Path]) -> list[str]:
    lines = []
    for receipt, place in zip(measured.receipts, places, strict=True):
        lines += [_receipt_line(receipt), f"    {place}"]
    return [*lines, *(f"{each.part} {each.dtype} {each.fixed or ''}: {each.says}" for each in measured.lines)]


def _receipt_line(receipt: Receipt) -> str:
    sizes = ",".join(f"{name}={size}" for name, size in receipt.dims.items())
    told = f"{receipt.target} ({receipt.device.kind}) {receipt.part} {receipt.dtype} {sizes}"
    if receipt.verdict is None:
        return f"{told}: failed: {receipt.failures[0].what}"
    ratio, chosen = receipt.verdict.ratio, {each.role: each.chosen for each in receipt.choices}
    text = f"{told}: {chosen.get('candidate')} against {chosen.get('baseline')}: {receipt.verdict.verdict}"
    if ratio is not None:
        high = f"{ratio.high:.3f}" if ratio.high is not None else "unbounded"
        text += f", ratio {ratio.ratio:.3f} [{ratio.low:.3f}, {high}]"
    shares = [f"{each.role} {each.share_of_copy:.0%}" for each in receipt.achieved if each.share_of_copy is not None]
    return text + (f"; of the measured copy: {', '.join(shares)}" if shares else "")
