"""`kernel-audit decide`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kernel_audit.cli.options import json_option


@click.command("decide")
@click.argument("bundle", type=click.Path(path_type=Path))
@json_option
def command(bundle: Path, as_json: bool) -> None:
    """Decide again from the records of a bundle. Writes nothing; needs no JAX."""
    from kernel_audit.decision import decide, exit_code
    from kernel_audit.evidence import read_bundle
    from kernel_audit.records import encode
    from kernel_audit.report import summary_lines

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
