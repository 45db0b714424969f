"""`kernel-audit run`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from kernel_audit.cli.options import json_option, question, question_options


@click.command("run")
@question_options
@click.option("--out", type=click.Path(path_type=Path), help="The bundle's folder; evidence/NAME where not given.")
@click.option("--resume", is_flag=True, help="Go on with an interrupted audit.")
@click.option(
    "--require",
    type=click.Choice(["keep", "revise", "use-the-baseline", "await-target-evidence"]),
    help="Exit 1 unless this is the decision.",
)
@json_option
def command(out: Path | None, resume: bool, require: str | None, as_json: bool, **asked: Any) -> None:
    """Audit a kernel: check it, decide, and write the evidence into a bundle.

    AUDIT is a file, file.py:name, module:name, or a built-in name (axpy, bias-relu, regression, ...).
    """
    from kernel_audit import conduct
    from kernel_audit.cli.progress import shown_progress
    from kernel_audit.decision import exit_code
    from kernel_audit.records import encode
    from kernel_audit.report import summary_lines

    place = out or Path("evidence") / _name(asked["audit"])
    with shown_progress(quiet=as_json) as progress:
        answer = conduct.run(question(**asked), place, progress, resume=resume)
    if as_json:
        click.echo(encode(answer.decision).decode())
    else:
        if answer.finished_before:
            click.echo(f"The bundle {place} is finished; nothing was run again.\n")
        for line in summary_lines(answer.evidence, answer.decision, page=str(answer.page)):
            click.echo(line)
    code = exit_code(answer.decision)
    if require is not None and answer.decision.decision != require:
        click.echo(f"--require {require}: the decision is {answer.decision.decision}", err=True)
        code = max(code, 1)
    sys.exit(code)


def _name(audit: str) -> str:
    """A folder's name for AUDIT: the name after the colon, or the file's."""
    place, _, name = audit.rpartition(":")
    return name if place else Path(audit).stem
