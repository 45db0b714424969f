"""`kernel-audit verify`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernel_audit.cli.options import json_option, kept_sources

if TYPE_CHECKING:
    from kernel_audit.evidence import Fault


@click.command("verify")
@click.argument("bundle", type=click.Path(path_type=Path))
@json_option
def command(bundle: Path, as_json: bool) -> None:
    """Verify a bundle: every digest, what must hold between records, and the decision replayed. Needs no JAX.

    Exit code 1 names every file that was changed, added or removed, and every record that contradicts another.
    """
    from kernel_audit.decision import verify
    from kernel_audit.records import encode

    faults = verify(bundle) or _page_faults(bundle)
    if as_json:
        click.echo(encode({"bundle": bundle.name, "faults": faults}).decode())
    else:
        for fault in faults:
            click.echo(f"{fault.place}: {fault.kind}: {fault.text.replace(chr(10), chr(10) + chr(32) * 4)}")
        click.echo(_closing(bundle, len(faults)))
    sys.exit(1 if faults else 0)


def _page_faults(bundle: Path) -> list[Fault]:
    """The page is drawn from the records: drawn again by the same version, it is the same page."""
    from kernel_audit import __version__
    from kernel_audit.evidence import Fault, read_bundle
    from kernel_audit.report import render_page

    evidence, decision = read_bundle(bundle)
    if evidence.environment.tool_version != __version__:
        return []
    figures = {each.name: each.read_bytes() for each in sorted((bundle / "figures").iterdir())}
    if render_page(evidence, decision, figures, kept_sources(bundle)) == (bundle / "report.html").read_bytes():
        return []
    return [Fault(file="report.html", kind="inconsistent", text="it does not show what the records say")]


def _closing(bundle: Path, faults: int) -> str:
    if not faults:
        return f"{bundle}: verified, the decision replays the same"
    return f"{bundle}: {faults} fault{'s' if faults > 1 else ''}; its decision cannot be relied on. Audit afresh."
