"""`kernel-audit compile`."""

from __future__ import annotations

import sys
from typing import Any

import click

from kernel_audit.cli.options import json_option


@click.command("compile")
@click.argument("audit", metavar="AUDIT")
@click.option(
    "--target", "targets", multiple=True, metavar="NAME", help="A described device, such as tpu:v5e; repeatable."
)
@click.option(
    "--topology", metavar="EXTENT", help="Devices that the complete step is laid over, such as 4x4; up to 256."
)
@click.option("--probe", is_flag=True, help="Sweep around the declared configurations: what does this compiler accept?")
@click.option(
    "--baselines", "hunt", is_flag=True, help="Respell the baselines and rank what is right by the static model."
)
@click.option(
    "--sweep",
    "sweeps",
    multiple=True,
    metavar="NAME=SIZES",
    help="Only static figures over sizes of a dimension: n=2**14:2**22, doubling, or d=128,512; repeatable.",
)
@click.option("--candidate", metavar="PLACE", help="Compile this function instead: file.py:name or module:name.")
@click.option(
    "--deadline",
    "deadline_s",
    type=click.FloatRange(0.1, 86400.0),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Longest time without progress in one program.",
)
@click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Workers side by side.")
@json_option
def command(
    audit: str, candidate: str | None, deadline_s: float, workers: int, as_json: bool, **asked: Any
) -> None:  # fmt: skip
    """Compile an audit's programs for described devices, without a device: accepted or refused, schedule, bytes, floors.

    AUDIT is a file, file.py:name, module:name, or a built-in name (axpy, bias-relu, regression, ...). What compiles here has
    not run anywhere: no time is measured, floors are a static model. Exit code 1 where a compiler refuses what is declared for
    its target or the candidate raises; 2 where the candidate ends its worker before there is an answer.
    """
    from kernel_audit.cli.progress import shown_progress
    from kernel_audit.conduct import Question
    from kernel_audit.conduct.compiling import CompileQuestion, compile_audit, exit_code
    from kernel_audit.matrix.laboratory import Limits
    from kernel_audit.records import encode
    from kernel_audit.report.compiled import compiled_lines

    question = Question(audit=audit, candidate=candidate, limits=Limits(deadline_s), workers=workers)
    more = (asked["probe"], asked["hunt"], tuple(asked["sweeps"]))
    wanted = CompileQuestion(question, tuple(asked["targets"]), asked["topology"], *more)
    with shown_progress(quiet=as_json) as progress:
        report = compile_audit(wanted, progress)
    if as_json:
        click.echo(encode(report).decode())
    else:
        for line in compiled_lines(report) if not asked["sweeps"] else _sweep_lines(report):
            click.echo(line)
    sys.exit(exit_code(report))


def _sweep_lines(report: Any) -> list[str]:
    """Where static figures cross; no size is the winner, and nothing here is a time."""
    lines = [f"{report.audit}: static figures over sizes; nothing ran"]
    for each in report.sweeps:
        fixed = ",".join(f"{name}={size}" for name, size in each.fixed.items())
        lines.append(f"  {each.target} {each.dtype} {fixed} {each.figure}: {each.says}")
        for point in each.points:
            lines.append(
                f"    {each.dimension}={point.size}: candidate {_figure(point.candidate)}, baseline {_figure(point.baseline)}"
            )
    return [*lines, *(f"  {name}: {text}" for name, text in report.not_compiled.items())]


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.6g}"
