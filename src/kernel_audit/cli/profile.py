"""`kernel-audit profile`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernel_audit.cli.options import json_option

if TYPE_CHECKING:
    from kernel_audit.conduct.profiling import ProfileQuestion
    from kernel_audit.conduct.question import Question

GIB = 1 << 30


@click.command("profile")
@click.argument("audit", metavar="AUDIT")
@click.option(
    "--devices", type=click.IntRange(1, 8), default=8, show_default=True, help="Logical devices of this host."
)
@click.option(
    "--steps",
    type=click.IntRange(10, 30),
    default=20,
    show_default=True,
    help="Traced steps; five times as many timed.",
)
@click.option(
    "--side", default="", metavar="NAME", help="What stands in the candidate's place: a baseline, or candidate."
)
@click.option(
    "--dims", "sizes", multiple=True, metavar="NAME=SIZE", help="A size instead of the workload's; repeatable."
)
@click.option(
    "--remat",
    "policies",
    multiple=True,
    metavar="POLICY",
    help="Instead: the step under a checkpoint policy, none, all, save:NAMES or offload:NAMES; repeatable.",
)
@click.option("--no-checks", is_flag=True, help="Without the cross-checks: no staged executables, no ablation twins.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Keep profile.json and the traces here.")
@click.option("--deadline", "deadline_s", type=click.FloatRange(0.1, 86400.0), default=300.0, show_default=True,
              metavar="SECONDS", help="Longest time without progress.")  # fmt: skip
@click.option("--memory", "memory_gib", type=click.FloatRange(0.25, 4096.0), default=8.0, show_default=True,
              metavar="GIB", help="Most memory of the worker.")  # fmt: skip
@json_option
def command(
    audit: str,
    devices: int,
    steps: int,
    side: str,
    sizes: tuple[str, ...],
    policies: tuple[str, ...],
    no_checks: bool,
    out: Path | None,
    deadline_s: float,
    memory_gib: float,
    as_json: bool,
) -> None:
    """Profile the complete step of an audit on logical devices: where its time goes, and what a kernel could gain there.

    AUDIT is a file, file.py:name, module:name, or a built-in name. Compilation, warm steps and the trace are passes of their
    own. Shares of logical devices say nothing about a TPU or GPU, and decide nothing.

    Exit code 0 whatever is found; 1 where a step under a checkpoint policy gives other results, or the
    step without one did not run, so that nothing was compared.
    """
    from kernel_audit.conduct import Question
    from kernel_audit.conduct.profiling import ProfileQuestion
    from kernel_audit.matrix.laboratory import Limits

    question = Question(audit=audit, limits=Limits(deadline_s, int(memory_gib * GIB)))
    asked = ProfileQuestion(side, devices, steps, _dims(sizes), checks=not no_checks)
    if policies:
        _policies(question, asked, policies, as_json)
    else:
        _profile(question, asked, out, as_json)


def _profile(question: Question, asked: ProfileQuestion, out: Path | None, as_json: bool) -> None:
    from kernel_audit.cli.progress import shown_progress
    from kernel_audit.conduct.profiling import profile_audit, require_free, write_profile
    from kernel_audit.records import encode
    from kernel_audit.report.profile import profile_lines

    if out is not None:
        require_free(out)
    with shown_progress(quiet=as_json) as progress:
        profiled, _ = profile_audit(question, asked, progress)
    if out is not None:
        write_profile(profiled, out)
    if as_json:
        click.echo(encode(profiled.record).decode())
        return
    for line in profile_lines(profiled.record):
        click.echo(line)


def _policies(question: Question, asked: ProfileQuestion, policies: tuple[str, ...], as_json: bool) -> None:
    import sys

    from kernel_audit.cli.progress import shown_progress
    from kernel_audit.conduct.profiling import policy_audit
    from kernel_audit.records import encode
    from kernel_audit.report.profile import policy_lines

    with shown_progress(quiet=as_json) as progress:
        report = policy_audit(question, asked, list(policies), progress)
    if as_json:
        click.echo(encode(report).decode())
    else:
        for line in policy_lines(report):
            click.echo(line)
    sys.exit(int(not report.compared))


def _dims(sizes: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for each in sizes:
        name, _, size = each.partition("=")
        if not name or not size.isdecimal() or int(size) < 1:
            raise click.BadParameter(f"{each!r}: a dimension and its size, such as n=8192", param_hint="--dims")
        found[name] = int(size)
    return found
