"""Whether a model file is the reader's own work: it may not import the solution or the package's own kernels.

Recognised are imports and texts that name them, every module of them that a model loads or file of them that it reads,
whenever it does, and unchanged copies of their files under other names. Not recognised are changed copies: kernels that were
typed or pasted from there, renamed or reformatted. The checker asks whether a promise is kept; whose thought it was, it
cannot know.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import kernel_audit
from kernel_audit.errors import AuditError
from kernel_audit.records import digest_bytes

# The shipped solution, known by its bytes. After a change of it, put the digest that the checker's refusal shows here.
SOLUTION_DIGEST = "sha256:f71e6a2f2900f86fdc3a2ee9cbdfb40dd7550850d286b1526d2a0b499527da82"
CLOSED = ("kernel_audit.kernels", "kernel_audit.target", "kernel_audit.course", "solution")
_NAMED_IN_TEXT = re.compile(r"kernel_audit[./\\]+(kernels|target|course)\b|\bsolution[./\\]model\b")
_PACKAGE = Path(kernel_audit.__file__).parent


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


def closed_files(sources: Mapping[str, str], read: Iterable[str] = ()) -> list[str]:
    """Of modules that a model loaded (label -> path) and Python files that it read, those that it may not use, however it
    named them; unchanged copies as well."""
    found = [label for label in sources if any(label.startswith(each.replace(".", "/")) for each in CLOSED[:2])]
    paths = [*sources.items(), *((Path(path).name, path) for path in read)]
    return found + [label for label, path in paths if _is_closed(Path(path)) or _is_copy(Path(path))]


def _is_closed(path: Path) -> bool:
    parts = path.parts
    if parts[-2:] == ("solution", "model.py"):
        return True
    return any(
        parts[at : at + 2] in (("kernel_audit", "kernels"), ("kernel_audit", "target")) for at in range(len(parts))
    )


def _is_copy(path: Path) -> bool:
    """Whether a file holds the very bytes of one of the package's kernels, of its benchmark, or of the solution."""
    if path.suffix != ".py" or not path.is_file():
        return False
    return digest_bytes(path.read_bytes()) in _closed_digests()


@functools.cache
def _closed_digests() -> frozenset[str]:
    files = [each for name in ("kernels", "target") for each in (_PACKAGE / name).glob("*.py")]
    return frozenset({SOLUTION_DIGEST, *(digest_bytes(each.read_bytes()) for each in files)})


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
