"""Where an audit is stated: AUDIT of the command line, found without reading it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernel_audit.errors import AuditFileError, near

_NAMES = ("axpy", "axpy-gpu", "bias-relu", "bias-relu-gpu", "blocked-axpy", "regression")
BUILT_IN = dict.fromkeys(_NAMES, "kernel_audit.kernels.audits")


@dataclass(frozen=True)
class Place:
    """Where an audit is stated: a file in `root`, or a module, and its name there (None: the only one)."""

    root: Path
    file: str | None = None
    module: str | None = None
    name: str | None = None


def locate(text: str) -> Place:
    """AUDIT of the command line: a file, `file.py:name`, `module:name`, or a built-in name. Raises AuditFileError."""
    if text in BUILT_IN:
        return Place(Path.cwd(), module=BUILT_IN[text], name=text)
    path, _, name = text.partition(":")
    if path.endswith(".py"):
        file = Path(path).resolve()
        if not file.is_file():
            raise AuditFileError(
                "no such audit file", stage="audit", where=path, expected="a Python file", got="nothing there"
            )
        return Place(file.parent, file=file.name, name=name or None)
    if name:
        return Place(Path.cwd(), module=path, name=name)
    raise AuditFileError(
        "no audit of this name",
        stage="audit",
        where=text,
        expected="a file, file.py:name, module:name, or one of " + ", ".join(BUILT_IN),
        got=near(text, BUILT_IN),
        next_command="kernel-audit run axpy",
    )
