"""Reads the imports of a source tree, and says which of them point the wrong way. No import is carried out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "kernel_audit"
OUTSIDE = "jax"  # JAX and its parts, as one name in the lines below

BOTTOM = frozenset({"errors", "records", "statistics"})
JUDGING = BOTTOM | {"contract", "evidence", "decision", "report"}
MEASURING_BASE = BOTTOM | {"contract", "fixture", "oracle", "program", "worker", "inspect", "symbolic"}
MEASURING = MEASURING_BASE | {"matrix", "target", "timing", "workload", "profile", "measure"}

# What each part may import, itself apart. A part that is missing here has no place yet: give it one.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "errors": frozenset(),
    "records": frozenset({"errors"}),
    "statistics": frozenset({"errors", "records"}),
    "contract": BOTTOM,
    # The measuring half.
    "fixture": BOTTOM | {"contract"},
    "oracle": BOTTOM | {"contract", "fixture", OUTSIDE},
    "program": BOTTOM | {"contract", OUTSIDE},
    "worker": BOTTOM | {"contract", OUTSIDE},
    "inspect": BOTTOM | {"contract", "program", OUTSIDE},
    "symbolic": BOTTOM | {"contract", "program", "inspect", OUTSIDE},
    "matrix": MEASURING_BASE | {OUTSIDE},
    "target": MEASURING_BASE | {"matrix", OUTSIDE},  # results of a target are compared by the one function for all
    "timing": MEASURING_BASE | {"target", OUTSIDE},
    "profile": MEASURING_BASE | {"matrix", "target", OUTSIDE},  # a step is loaded as any function of an audit is
    "workload": MEASURING_BASE | {"matrix", "target", "timing", "profile", OUTSIDE},  # its jobs load what cells load
    # From an audit to receipts: exports, checks and sessions brought together on a device; a step on its workload's values.
    "measure": MEASURING_BASE | {"matrix", "target", "timing", "workload", OUTSIDE},
    "kernels": frozenset({"contract", OUTSIDE}),
    # The judging half: plain data in, plain data out.
    "evidence": BOTTOM | {"contract"},
    "decision": BOTTOM | {"contract", "evidence"},
    "report": BOTTOM | {"contract", "evidence", "decision"},
    # Where both meet.
    "conduct": JUDGING | MEASURING,
    "cli": JUDGING | {"conduct", "matrix", "measure", "worker"},
    # The course's checker: the same engine, told in lines; it sees what `conduct` sees.
    "course": JUDGING | MEASURING | {"conduct", "kernels", OUTSIDE},
    "__main__": frozenset({"cli"}),
    "__init__": frozenset({"contract", "program"}),  # by name, when a word of an audit file is first used
}


@dataclass(frozen=True)
class Import:
    """One import: where it stands, and which part of the package (or "jax") it names."""

    file: str
    line: int
    part: str
    names: str
    at_top: bool  # carried out when the module is imported, not when a function of it is called

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.part} imports {self.names}"


def wrong_imports(root: Path) -> list[Import]:
    """Every import below `root` (the package's folder) that MAY_IMPORT does not allow."""
    return [
        each
        for each in imports(root)
        if each.names != each.part and each.names not in MAY_IMPORT.get(each.part, frozenset())
    ]


def imports(root: Path) -> Iterator[Import]:
    """Imports of parts of the package and of JAX, those inside functions included."""
    for path in sorted(root.rglob("*.py")):
        file = path.relative_to(root)
        part = file.parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text("utf-8"))
        inside = {id(node) for function in _functions(tree) for node in ast.walk(function)}
        inside |= {id(node) for block in _type_checking(tree) for node in ast.walk(block)}
        for node in ast.walk(tree):
            for name in _modules(node, file):
                named = _part_of(name)
                if named is not None:
                    yield Import(str(file), node.lineno, part, named, id(node) not in inside)


def _functions(tree: ast.Module) -> list[ast.AST]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)]


def _type_checking(tree: ast.Module) -> list[ast.AST]:
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    return [node for node in blocks if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"]


def _modules(node: ast.AST, file: Path) -> list[str]:
    """Full names of what a statement imports; relative imports made absolute."""
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    if node.level:
        home = [PACKAGE, *file.parent.parts][: len(file.parent.parts) + 2 - node.level]
        module = ".".join([*home, *([node.module] if node.module else [])])
    else:
        module = str(node.module)
    return [f"{module}.{each.name}" for each in node.names] if module == PACKAGE else [module]


def _part_of(name: str) -> str | None:
    """The part of the package that a module belongs to, "jax", or None for anything else."""
    head, _, rest = name.partition(".")
    if head in ("jax", "jaxlib"):
        return OUTSIDE
    if head != PACKAGE or not rest:
        return None
    part = rest.partition(".")[0]
    return None if part.startswith("__version") else part
