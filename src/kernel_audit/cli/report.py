"""`kernel-audit report`."""

from __future__ import annotations

from pathlib import Path

import click

from kernel_audit.cli.options import json_option, kept_sources


@click.command("report")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option("--html", type=click.Path(path_type=Path), help="Write the page to this file instead.")
@json_option
def command(bundle: Path, html: Path | None, as_json: bool) -> None:
    """Show a bundle as text, or write its page again. Never writes into the bundle; needs no JAX."""
    from kernel_audit.decision import decide
    from kernel_audit.errors import BundleError
    from kernel_audit.evidence import read_bundle
    from kernel_audit.records import encode
    from kernel_audit.report import all_figures, full_text, render_page

    evidence, decision = read_bundle(bundle)
    if encode(decide(evidence)) != encode(decision):
        raise BundleError(
            "the bundle states another decision than its records give",
            stage="report",
            where=f"{bundle.name}: decision.json",
            expected=str(decide(evidence).decision),
            got=str(decision.decision),
            next_command=f"kernel-audit verify {bundle}",
        )
    if html is not None:
        if html.resolve().is_relative_to(bundle.resolve()):
            raise BundleError(
                "a page inside the bundle",
                stage="report",
                where=str(html),
                expected="a file outside: bundles are written once",
                got=f"a file in {bundle}",
            )
        page = render_page(evidence, decision, all_figures(evidence), kept_sources(bundle))
        try:
            html.write_bytes(page)
        except OSError as error:
            raise BundleError(
                "the page cannot be written there",
                stage="report",
                where=str(html),
                expected="a file in a folder that exists",
                got=str(error.strerror),
            ) from None
        click.echo(str(html))
    elif as_json:
        click.echo(encode({"decision": decision, "cells": evidence.cells, "controls": evidence.controls}).decode())
    else:
        click.echo(full_text(evidence, decision))
