"""`kernel-audit inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernel_audit.cli.options import json_option

if TYPE_CHECKING:
    from kernel_audit.conduct.inspecting import Inspection
GIB = 1 << 30


@click.command("inspect")
@click.argument("audit", metavar="AUDIT")
@click.option("--candidate", metavar="PLACE", help="Inspect this function instead: file.py:name or module:name.")
@click.option(
    "--target", "targets", multiple=True, metavar="TARGET", help="A described device, such as tpu:v5e; repeatable."
)
@click.option(
    "--svg", type=click.Path(path_type=Path), metavar="FOLDER", help="Write a drawing of each kernel's blocks here."
)
@click.option("--deadline", "deadline_s", type=click.FloatRange(0.1, 86400.0), default=60.0, show_default=True,
              metavar="SECONDS", help="Longest time without progress in one program.")  # fmt: skip
@click.option("--memory", "memory_gib", type=click.FloatRange(0.25, 4096.0), default=8.0, show_default=True,
              metavar="GIB", help="Most memory of the worker.")  # fmt: skip
@json_option
def command(
    audit: str,
    candidate: str | None,
    targets: tuple[str, ...],
    svg: Path | None,
    deadline_s: float,
    memory_gib: float,
    as_json: bool,
) -> None:
    """What an audit's kernels do with their blocks, read before anything runs.

    Who writes which block, bytes moved, a model of the memory that is needed, copies around each kernel, and faults that
    are certain. AUDIT is a file, file.py:name, module:name, or a built-in name. It needs no baselines here.

    Exit code 0 whatever is found: what is read here informs and decides nothing.
    """
    from kernel_audit.cli.progress import shown_progress
    from kernel_audit.conduct import Question
    from kernel_audit.conduct.inspecting import inspect
    from kernel_audit.matrix.laboratory import Limits
    from kernel_audit.records import encode

    limits = Limits(deadline_s, int(memory_gib * GIB))
    question = Question(audit=audit, candidate=candidate, limits=limits)
    with shown_progress(quiet=as_json) as progress:
        found = inspect(question, targets, progress)
    if svg is not None:
        _draw(found, svg)
    if as_json:
        shown = {"audit": found.audit.name, "programs": found.programs, "kernels": found.kernels}
        click.echo(encode(shown).decode())
        return
    for line in inspection_lines(found):
        click.echo(line)


def inspection_lines(found: Inspection) -> list[str]:
    """Every program with its kernels; blocks that were drawn already are not drawn again."""
    from kernel_audit.matrix.plan import size_text, text_of
    from kernel_audit.report.inspection import kernel_lines

    lines: list[str] = []
    drawn: list[object] = []
    for program in found.programs:
        choices = text_of({**program.mode, **program.configuration})
        lines += ["", f"{found.audit.name}  {size_text(program.dims)}  {program.dtype}  {choices}   ({program.key})"]
        if program.refused:
            lines.append(f"  not captured: {program.refused}")
        elif not program.kernels:
            lines.append("  no kernel in this program")
        for kernel in found.kernels:
            if kernel.program.partition("/")[0] == program.key:
                backwards = "  in the gradient: " if "/" in kernel.program else ""
                again = (kernel.name, kernel.owner_map)
                first, *rest = kernel_lines(kernel, drawn=again not in drawn)
                drawn.append(again)
                lines += [f"{backwards}{first}", *rest]
    return lines[1:]


def _draw(found: Inspection, folder: Path) -> None:
    from kernel_audit.errors import BundleError
    from kernel_audit.report.ownership import ownership_svg

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for index, kernel in enumerate(found.kernels):
            if kernel.owner_map is not None:
                title = f"{found.audit.name}: {kernel.name}, {kernel.program}"
                name = f"{kernel.program.replace('/', '-')}-{index}.svg"
                (folder / name).write_text(ownership_svg(kernel.owner_map, title), encoding="utf-8")
    except OSError as error:
        raise BundleError(
            "the drawings cannot be written",
            stage="inspect",
            where=f"--svg {folder}",
            expected="a folder that can be made",
            got=str(error.strerror),
            next_command="choose another folder",
        ) from None
