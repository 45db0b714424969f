"""What is wrong with the shape of a source tree: lengths, names, and lists of public names."""

from __future__ import annotations

import ast
from pathlib import Path

LONGEST = 600  # lines
SECOND_LOOK = 400
VAGUE = frozenset(
    {"utils", "util", "helpers", "helper", "common", "manager", "managers", "misc", "base", "core", "tools"}
)

# file -> why it may be longer than LONGEST
allowed_length: dict[str, str] = {}


def long_files(root: Path, limit: int) -> list[str]:
    """Python files of more than `limit` lines, those with a reason apart."""
    lengths = {str(path.relative_to(root)): _lines(path) for path in sorted(root.rglob("*.py"))}
    return [f"{name}: {count}" for name, count in lengths.items() if count > limit and name not in allowed_length]


def vague_names(root: Path) -> list[str]:
    """Modules and packages whose name says nothing about what they hold."""
    names = [path for path in root.rglob("*") if path.suffix == ".py" or path.is_dir()]
    return sorted(str(path.relative_to(root)) for path in names if VAGUE & set(path.stem.strip("_").split("_")))


def unsorted_names(root: Path) -> list[str]:
    """Packages whose `__all__` is not sorted, holds a name twice, or names what the module neither binds nor holds."""
    found = []
    for path in sorted(root.rglob("__init__.py")):
        tree = ast.parse(path.read_text("utf-8"))
        names = _all(tree)
        if names is None:
            continue
        known = _bound(tree) | {each.stem for each in path.parent.iterdir()}
        if names != sorted(set(names), key=_ruff_order) or set(names) - known:
            found.append(str(path.relative_to(root)))
    return found


def _lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def _ruff_order(name: str) -> tuple[int, str]:
    """Constants first, then classes, then the rest: the order that the linter keeps."""
    if name.isupper():
        return 0, name
    return (1 if name[:1].isupper() else 2), name


def _all(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(each, ast.Name) and each.id == "__all__" for each in node.targets
        ):
            return list(ast.literal_eval(node.value)) if isinstance(node.value, ast.List) else None
    return None


def _bound(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(each.asname or each.name).partition(".")[0] for each in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {each.id for each in node.targets if isinstance(each, ast.Name)}
            if "_HOMES" in names and isinstance(node.value, ast.Dict):  # names that are loaded when they are first used
                names |= {each.value for each in node.value.keys if isinstance(each, ast.Constant)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names
