"""Options that several commands share, and how an answer is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from kernel_audit.conduct import Question

GIB = 1 << 30


def json_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--json`: the record instead of text."""
    return click.option("--json", "as_json", is_flag=True, help="Print the record as JSON, nothing else on stdout.")(
        function
    )


def question_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """AUDIT and how it is asked."""
    options = [
        click.argument("audit", metavar="AUDIT"),
        click.option("--candidate", metavar="PLACE", help="Audit this function instead: file.py:name or module:name."),
        click.option("--candidate-step", metavar="PLACE", help="A complete step of the candidate's own, beside the audit's."),
        click.option("--cells", metavar="PART", help="Only a fixture sequence, or cells whose id contains PART."),
        click.option("--quick", is_flag=True, help="Only the shapes that the audit states; none derived from blocks."),
        click.option("--deadline", "deadline_s", type=click.FloatRange(0.1, 86400.0), default=60.0, show_default=True,
                     metavar="SECONDS", help="Longest time without progress in one cell."),
        click.option("--memory", "memory_gib", type=click.FloatRange(0.25, 4096.0), default=8.0, show_default=True,
                     metavar="GIB", help="Most memory of one worker."),
        click.option("--workers", type=click.IntRange(1, 64), default=2, show_default=True, help="Workers side by side."),
        click.option("--late-seed", type=click.IntRange(0), metavar="N",
                     help="Seed of the values drawn late; random unless a run is to be repeated."),
    ]  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def question(
    audit: str,
    candidate: str | None,
    candidate_step: str | None,
    cells: str | None,
    quick: bool,
    deadline_s: float,
    memory_gib: float,
    workers: int,
    late_seed: int | None,
) -> Question:
    """The question that these options ask."""
    from kernel_audit.conduct import Question
    from kernel_audit.matrix.laboratory import Limits

    return Question(
        audit=audit,
        candidate=candidate,
        candidate_step=candidate_step,
        cells=cells,
        quick=quick,
        late_seed=late_seed,
        limits=Limits(deadline_s, int(memory_gib * GIB)),
        workers=workers,
        command=(Path(sys.argv[0]).name, *sys.argv[1:]),
    )


def kept_sources(bundle: Path) -> dict[str, bytes]:
    """The judged sources of a bundle by label."""
    home = bundle / "sources"
    return {
        each.relative_to(home).as_posix(): each.read_bytes()
        for each in home.rglob("*")
        if each.is_file() and not each.is_symlink()
    }
