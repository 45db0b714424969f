"""`kernel-audit check`."""

from __future__ import annotations

import sys
from typing import Any

import click

from kernel_audit.cli.options import json_option, question, question_options


@click.command("check")
@question_options
@json_option
def command(as_json: bool, **asked: Any) -> None:
    """The correctness matrix of an audit, and what it decides; keeps nothing.

    AUDIT is a file, file.py:name, module:name, or a built-in name (axpy, bias-relu, regression, ...).
    """
    from kernel_audit import conduct
    from kernel_audit.cli.progress import shown_progress
    from kernel_audit.decision import exit_code
    from kernel_audit.records import encode
    from kernel_audit.report import summary_lines

    with shown_progress(quiet=as_json) as progress:
        answer = conduct.check(question(**asked), progress)
    if as_json:
        click.echo(encode({"decision": answer.decision, "cells": answer.evidence.cells}).decode())
    else:
        for line in summary_lines(answer.evidence, answer.decision, page=None):
            click.echo(line)
    sys.exit(exit_code(answer.decision))
