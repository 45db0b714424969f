"""`kernel-audit new`."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click


@click.command("new")
@click.argument("file", type=click.Path(path_type=Path))
def command(file: Path) -> None:
    """Write an audit file to start from: a small kernel, its baseline, and the four facts that an audit needs."""
    from kernel_audit.errors import AuditError

    if file.suffix != ".py":
        raise AuditError("not a Python file", stage="new", where=str(file), expected="NAME.py", got=file.name)
    if file.exists():
        raise AuditError(
            "a file is there already",
            stage="new",
            where=str(file),
            expected="a free name",
            got="a file, which stays as it is",
            next_command=f"kernel-audit check {file}",
        )
    if not file.parent.is_dir():
        raise AuditError("no such folder", stage="new", where=str(file), expected="a folder that exists", got="none")
    file.write_bytes(resources.files("kernel_audit.cli").joinpath("template_audit.py.txt").read_bytes())
    click.echo(f"{file}: change it, then: kernel-audit check {file}")
