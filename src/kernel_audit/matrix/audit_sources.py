"""Which files an audit is about: those of the functions that it names, and what these import of the same project.

Imports are read and not carried out, those inside functions included, so that the answer is the same wherever it is asked.
A module that is loaded by a name made at run time is not seen here. No JAX.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kernel_audit.contract import AUDIT_MODULE, Audit, FunctionRef
from kernel_audit.errors import AuditFileError

OWN, KERNELS = "kernel_audit", "kernel_audit.kernels"


@dataclass(frozen=True)
class _Home:
    """A folder whose modules belong to the audit: `package` is the name that it has, "" for a root."""

    package: str
    folder: Path

    def file_of(self, name: str) -> Path | None:
        """The file of a module that is in here."""
        if name == self.package:
            places = [self.folder / "__init__.py"]
        elif not self.package or name.startswith(f"{self.package}."):
            place = self.folder.joinpath(*name[len(self.package) :].strip(".").split("."))
            places = [place / "__init__.py", place.with_name(f"{place.name}.py")]
        else:
            places = []
        return next((each for each in places if each.is_file()), None)


def is_the_tool(label: str) -> bool:
    """Whether a label is of kernel-audit itself, the kernels that it brings apart: its version says which that was."""
    return label.startswith(f"{OWN}/") and not label.startswith(f"{KERNELS.replace('.', '/')}/")


def sources_of(audit: Audit, root: Path | None, *, file: str | None = None) -> dict[str, str]:
    """label -> path of every file that the audit is about. `root` is the folder of its file references, if it has any; `file`
    the audit's own file there, which was evaluated in this process: what it loaded from below `root` is told, too.

    Raises AuditFileError for a function whose file or module is not there.
    """
    found: dict[str, str] = {}
    homes = [_Home("", root)] if root is not None else []
    for ref in _named(audit):
        if ref.file is not None:
            if root is None:  # a file is looked for beside an audit's file; a built-in audit has none
                continue
            if not (root / ref.file).is_file():
                raise _nowhere(audit, ref, "a file beside the audit file")
            found[ref.file] = str(root / ref.file)
            continue
        path = _origin(audit, ref)
        if path is not None:
            found[label_of(str(ref.module), path)] = str(path)
            homes += _home_of(str(ref.module), path)
    if file is not None and root is not None:
        found |= _loaded(root, file)
    return dict(sorted(with_imports(found, homes).items()))


def below(files: Mapping[str, str], roots: Iterable[Path]) -> dict[str, str]:
    """`files` with what they import from below `roots`."""
    return dict(sorted(with_imports(dict(files), [_Home("", root) for root in roots]).items()))


def with_imports(files: dict[str, str], homes: list[_Home]) -> dict[str, str]:
    """The files and, again and again, those of `homes` that they import."""
    waiting = list(files.items())
    while waiting:
        label, path = waiting.pop()
        package = label.rpartition("/")[0].replace("/", ".")
        for name in _imported(Path(path), package):
            for home in homes:
                place = home.file_of(name)
                if place is None or is_the_tool(label_of(name, place)):
                    continue
                if label_of(name, place) not in files:
                    files[label_of(name, place)] = str(place)
                    waiting.append((label_of(name, place), str(place)))
                break
    return files


def label_of(module: str, path: Path) -> str:
    """ "package/module.py", the same on every machine."""
    return module.replace(".", "/") + ("/__init__.py" if path.name == "__init__.py" else ".py")


def _named(audit: Audit) -> list[FunctionRef]:
    """Every function that the audit names, those of its workload included."""
    stated = [*audit.baselines, *audit.ablations, *audit.controls]
    named = [audit.candidate, *[each.function for each in stated], audit.oracle.function]
    if (step := audit.workload) is not None:
        named += [step.step, step.host, step.inputs, step.candidate_step]
    return [each for each in named if each is not None]


def _origin(audit: Audit, ref: FunctionRef) -> Path | None:
    try:
        spec = importlib.util.find_spec(str(ref.module))
    except ModuleNotFoundError:
        spec = None
    if spec is None:
        raise _nowhere(audit, ref, "a module that can be imported")
    return Path(spec.origin) if spec.origin and spec.origin.endswith(".py") else None


def _home_of(module: str, path: Path) -> list[_Home]:
    """The package that a named module is in; a module outside of packages has no neighbours that are known to be its own."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return [_Home(package, path.parent)] if package else []


def _loaded(root: Path, file: str) -> dict[str, str]:
    """The audit's own file, and what it loaded from below its folder, installed libraries and this package apart."""
    found = {file: str(root / file)}
    for name, module in sorted(sys.modules.items()):
        path = Path(str(getattr(module, "__file__", None) or ""))
        foreign = "site-packages" in path.parts or path.is_relative_to(sys.base_prefix)
        if name in (AUDIT_MODULE, "__main__") or name.partition(".")[0] == OWN or foreign or path.suffix != ".py":
            continue
        if path.resolve().is_relative_to(root.resolve()):
            found[label_of(name, path)] = str(path)
    return found


def _imported(path: Path, package: str) -> Iterator[str]:
    """Full names that a file may import, with the packages that they are in. Nothing, where it cannot be read."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".") if package else []
            base = [*above[: len(above) - node.level + 1], node.module or ""] if node.level else [node.module or ""]
            whole = ".".join(filter(None, base))
            names = [whole, *(f"{whole}.{each.name}" if whole else each.name for each in node.names)]
        for name in filter(None, names):
            parts = name.split(".")
            yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _nowhere(audit: Audit, ref: FunctionRef, expected: str) -> AuditFileError:
    return AuditFileError(
        "a function whose file is not there",
        stage="audit",
        where=f"audit {audit.name!r}",
        expected=expected,
        got=ref.text,
    )
