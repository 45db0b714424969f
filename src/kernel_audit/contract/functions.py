"""From a function, or its text, to a reference that another process can follow."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kernel_audit.contract.model import FunctionRef
from kernel_audit.errors import AuditFileError

# The module name under which an audit file is loaded; functions defined in it are referred to by file.
AUDIT_MODULE = "__kernel_audit_file__"


def reference_to(function: Callable[..., Any] | str, *, where: str) -> FunctionRef:
    """A reference to a named function: the object itself, "module:name" or "file.py:name".

    Raises AuditFileError for lambdas, functions inside functions and texts of another form.
    """
    if isinstance(function, str):
        return _parse(function, where)
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    module = getattr(function, "__module__", None)
    if not name or not module or "<" in name:
        raise AuditFileError(
            "a function that another process cannot find",
            stage="audit",
            where=where,
            expected="a function at the top of a module, or its place as text: 'file.py:name', 'module:name'",
            got=f"{name or function!r}",
        )
    if module == AUDIT_MODULE:
        file = sys.modules[AUDIT_MODULE].__file__
        return FunctionRef(file=Path(str(file)).name, name=name)
    return FunctionRef(module=module, name=name)


def _parse(text: str, where: str) -> FunctionRef:
    place, separator, name = text.rpartition(":")
    if not separator or not place or not name.replace(".", "_").isidentifier():
        raise AuditFileError(
            "a function's place that cannot be read",
            stage="audit",
            where=where,
            expected="'file.py:name' or 'module:name'",
            got=repr(text),
        )
    return FunctionRef(file=place, name=name) if place.endswith(".py") else FunctionRef(module=place, name=name)


def source_file(function: Callable[..., Any]) -> Path | None:
    """The file that a function was written in, wrappers looked through; None when there is none."""
    try:
        found = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:
        return None
    return Path(found) if found else None
