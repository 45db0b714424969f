"""`kernel-audit decide`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kernel_audit.cli.options import json_option


@click.command("decide")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--receipts", type=click.Path(path_type=Path), help="Add the receipts in this folder; needs --out.")
@click.option("--out", type=click.Path(path_type=Path), help="The new bundle, with the later evidence.")
@json_option
def command(bundle: Path, receipts: Path | None, out: Path | None, as_json: bool) -> None:
    """Decide again from the records of a bundle. Needs no JAX; never writes into it.

    With --receipts and --out: a new bundle, which names this one as its parent and has the receipts of `measure` in it.
    Receipts that are stale, altered or about something else are kept, and ignored with their reason.
    """
    from kernel_audit.decision import decide, exit_code
    from kernel_audit.evidence import read_bundle
    from kernel_audit.records import encode
    from kernel_audit.report import summary_lines

    if (receipts is None) != (out is None):
        raise click.UsageError("--receipts and --out go together: bundles are written once")
    if receipts is not None and out is not None:
        _add(bundle, receipts, out, as_json)
    evidence, stated = read_bundle(bundle)
    decision = decide(evidence)
    if as_json:
        click.echo(encode(decision).decode())
    else:
        for line in summary_lines(evidence, decision, page=str(bundle / "report.html")):
            click.echo(line)
        if encode(decision) != encode(stated):
            click.echo(f"The bundle states another decision: {stated.decision}. See: kernel-audit verify {bundle}")
    sys.exit(exit_code(decision))


def _add(bundle: Path, receipts: Path, out: Path, as_json: bool) -> None:
    from kernel_audit.conduct.adding import add_receipts
    from kernel_audit.decision import exit_code
    from kernel_audit.records import encode
    from kernel_audit.report import summary_lines

    answer = add_receipts(bundle, receipts, out)
    if as_json:
        click.echo(encode(answer.decision).decode())
    else:
        for line in summary_lines(answer.evidence, answer.decision, page=str(answer.page)):
            click.echo(line)
    sys.exit(exit_code(answer.decision))
