"""In a worker: from a reference to the function, and what the candidate changed of the libraries that judge it."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from kernel_audit.contract import AUDIT_MODULE, FunctionRef
from kernel_audit.errors import AuditError, AuditFileError, near

# What measures and judges inside a subject worker, beside this package itself. Functions present before the candidate is
# imported must be the same objects afterwards; new names (lazily loaded submodules) are no tampering.
WATCHED = (
    "builtins",
    "hashlib",
    "json",
    "os",
    "jax",
    "jax.core",
    "jax.export",
    "jax.numpy",
    "jax.lax",
    "jax.tree",
    "jax.experimental.pallas",
    "jax.experimental.pallas.tpu",
    "jax._src.api",
    "jax._src.core",
    "jax._src.interpreters.mlir",
    "jax._src.pallas.core",
    "jax._src.pallas.hlo_interpreter",
    "jax._src.pallas.pallas_call",
    "jax._src.pallas.mosaic.interpret.interpret_pallas_call",
    "numpy",
    "numpy.testing",
    "ml_dtypes",
)
IMPORT = "import"  # the step in which a candidate's module is loaded
_Seen = dict[tuple[str, str], int]
_FILES: dict[Path, ModuleType] = {}  # loaded once a worker: to load an audit file again would declare its audits twice


def model_file(text: str, *, stage: str) -> Path:
    """The Python file that `--implementation` names. Raises AuditError where there is none."""
    path = Path(text)
    if path.suffix == ".py" and path.is_file():
        return path
    kind = "a folder" if path.is_dir() else "no Python file" if path.is_file() else "nothing there"
    raise AuditError(
        "no model file",
        stage=stage,
        where=f"--implementation {text}",
        expected="a Python file (.py), or the word solution",
        got=kind,
        next_command="cp projects/kernel-audit/starter/model.py projects/kernel-audit/my_model.py",
    )


def load_module(ref: FunctionRef, roots: Sequence[Path]) -> ModuleType:
    """The module that a reference names; files are in one of `roots`. Whatever its code raises propagates."""
    if ref.module is not None:
        return importlib.import_module(ref.module)
    path = next((root / str(ref.file) for root in roots if (root / str(ref.file)).is_file()), roots[0] / str(ref.file))
    if path in _FILES:
        return _FILES[path]
    spec = importlib.util.spec_from_file_location(AUDIT_MODULE, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise AuditFileError(
            "a file that is not there", stage="load", where=ref.text, expected="a Python file", got=str(ref.file)
        )
    module = importlib.util.module_from_spec(spec)
    sys.modules[AUDIT_MODULE] = module
    spec.loader.exec_module(module)
    _FILES[path] = module
    return module


def load_function(ref: FunctionRef, roots: Sequence[Path]) -> Callable[..., Any]:
    """The function that a reference names. Raises AuditFileError when the module has no such name."""
    found: Any = load_module(ref, roots)
    for part in ref.name.split("."):
        if not hasattr(found, part):
            names = [each for each in dir(found) if not each.startswith("_")]
            raise AuditFileError(
                "a name that is not there", stage="load", where=ref.text, expected="a function", got=near(part, names)
            )
        found = getattr(found, part)
    return found


def as_keywords(*tables: dict[str, Any]) -> dict[str, Any]:
    """Keywords as the candidate expects them: lists of JSON become tuples again."""
    return {key: _tuples(value) for table in tables for key, value in table.items()}


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def watched_state() -> _Seen:
    """Identity of every function of the watched modules that are loaded, and JAX's settings."""
    ours = [name for name in sys.modules if name.partition(".")[0] == "kernel_audit"]
    state = {(name, key): id(value) for name in (*WATCHED, *ours) for key, value in _attributes(name)}
    jax = sys.modules.get("jax")
    if jax is not None:  # settings of the process change other programs than the candidate's
        state.update({("jax.config", key): hash(str(value)) for key, value in jax.config.values.items()})
    return state


def tampered(before: _Seen) -> list[str]:
    """Attributes that are another object than `before`, or gone: "numpy.testing.assert_allclose"."""
    now = watched_state()
    return sorted(f"{name}.{key}" for (name, key), seen in before.items() if now.get((name, key)) != seen)


def _attributes(name: str) -> Iterable[tuple[str, Any]]:
    module = sys.modules.get(name)
    # Counters and caches that a library rebinds itself are no functions of it.
    return [] if module is None else [(key, value) for key, value in vars(module).items() if callable(value)]


def sources(before: set[str]) -> dict[str, str]:
    """Files that were loaded since `before`, installed libraries apart: label -> path."""
    found: dict[str, str] = {}
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name in before or not file or not file.endswith(".py"):
            continue
        path = Path(file)
        if "site-packages" in path.parts or path.is_relative_to(sys.base_prefix):
            continue
        place = "" if name == AUDIT_MODULE else name.replace(".", "/")
        if path.name == "__init__.py":
            found[f"{place}/__init__.py"] = file
        else:
            found[f"{place}.py" if place else path.name] = file
    return found
