"""`kernel-audit verify`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kernel_audit.cli.options import json_option


@click.command("verify")
@click.argument("bundle", type=click.Path(path_type=Path))
@json_option
def command(bundle: Path, as_json: bool) -> None:
    """Verify a bundle: every digest, what must hold between records, and the decision replayed. Needs no JAX.

    Exit code 1 names every file that was changed, added or removed, and every record that contradicts another.
    """
    from kernel_audit.decision import verify
    from kernel_audit.records import encode

    faults = verify(bundle)
    if as_json:
        click.echo(encode({"bundle": bundle.name, "faults": faults}).decode())
    else:
        for fault in faults:
            click.echo(str(fault))
        click.echo(
            f"{bundle}: {len(faults)} faults" if faults else f"{bundle}: verified, the decision replays the same"
        )
    sys.exit(1 if faults else 0)
