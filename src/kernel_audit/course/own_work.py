"""Whether a model file is the reader's own work: it may not import the solution or the package's own kernels."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from kernel_audit.errors import AuditError
from kernel_audit.records import digest_bytes

# The shipped solution, known by its bytes. After a change of it, put the digest that the checker's refusal shows here.
SOLUTION_DIGEST = "sha256:f71e6a2f2900f86fdc3a2ee9cbdfb40dd7550850d286b1526d2a0b499527da82"
CLOSED = ("kernel_audit.kernels", "kernel_audit.target", "kernel_audit.course", "solution")
_NAMED_IN_TEXT = re.compile(r"kernel_audit\W+(kernels|target|course)\b|\bsolution\W+model\b")


def require_shipped_solution(path: Path) -> None:
    """`solution` means the file as it was shipped. Raises AuditError for a changed or a missing one."""
    got = digest_bytes(path.read_bytes()) if path.is_file() else "no file"
    if got != SOLUTION_DIGEST:
        raise AuditError(
            "the solution is not the one that was shipped",
            stage="check",
            where=str(path),
            expected=SOLUTION_DIGEST,
            got=got,
            next_command="fetch the file again; work in my_model.py instead",
        )


def require_own_work(path: Path) -> None:
    """Raises AuditError for a copy of the solution, and for a file that names closed modules in imports or in texts.

    A file that Python cannot parse passes here: what is wrong with it is told when it is imported.
    """
    data = path.read_bytes()
    if digest_bytes(data) == SOLUTION_DIGEST:
        raise refused(path, "a copy of the shipped solution")
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return
    for line, name in _closed_names(tree):
        raise refused(path, f"line {line}: {name}")


def closed_files(sources: dict[str, str]) -> list[str]:
    """Of files that a model loaded (label -> path), those that it may not load, however it named them."""
    found = [label for label in sources if any(label.startswith(each.replace(".", "/")) for each in CLOSED[:2])]
    return found + [label for label, path in sources.items() if Path(path).parts[-2:] == ("solution", "model.py")]


def refused(path: Path, got: str) -> AuditError:
    """The refusal of a file, with what was found in it."""
    return AuditError(
        "this file takes its kernels from somewhere else",
        stage="check",
        where=str(path),
        expected="kernels written in this file: no import of the solution, of kernel_audit.kernels or of kernel_audit.target",
        got=got,
        next_command="write them out; --implementation solution checks the shipped solution",
    )


def _closed_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, name) of closed modules in import statements, and in texts other than documentation."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            names = [module, *[f"{module.rstrip('.')}.{each.name}" for each in node.names]]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            if _NAMED_IN_TEXT.search(node.value):
                yield node.lineno, repr(node.value)
            continue
        else:
            continue
        for name in names:
            if any(name.lstrip(".") == each or name.lstrip(".").startswith(each + ".") for each in CLOSED):
                yield node.lineno, f"import of {name}"
