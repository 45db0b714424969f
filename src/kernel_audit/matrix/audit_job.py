"""Job of the audit worker: an audit file becomes canonical JSON; the parent reads nothing else of it."""

from __future__ import annotations

import importlib
import importlib.util
import traceback
from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.contract import Audit, FunctionRef, declared
from kernel_audit.errors import AuditError, AuditFileError, near
from kernel_audit.matrix.loading import load_module


def evaluate(steps: Any, *, root: str, file: str | None, module: str | None, name: str | None) -> dict[str, Any]:
    """The audit called `name` (or the only one) of a file relative to `root`, or of a module, as plain data.

    Raises AuditFileError for code that raises, for a file without audits and for an unknown name.
    """
    del steps
    declared.clear()
    where = str(file or module)
    try:
        if module is not None:
            importlib.import_module(module)
        else:
            load_module(FunctionRef(file=file, name=""), [Path(root)])
    except AuditError:
        raise
    except BaseException as error:
        raise _raised(error, where) from None
    if not declared:
        raise AuditFileError(
            "no audit in this file",
            stage="audit",
            where=where,
            expected="a function under @audit(...)",
            got="none",
            next_command="kernel-audit new FILE writes one to start from",
        )
    names = [each.name for each in declared]
    chosen = names[0] if name is None and len(names) == 1 else name
    if chosen is None or chosen not in names:
        raise AuditFileError(
            "several audits in this file" if chosen is None else "no audit of this name",
            stage="audit",
            where=where,
            expected="one of " + ", ".join(names),
            got="none named" if chosen is None else near(chosen, names),
            next_command=f"kernel-audit run {where}:{names[0]}",
        )
    audit = next(each for each in declared if each.name == chosen)
    return {"audit": msgspec.to_builtins(audit), "files": _files(audit, Path(root))}


def _files(audit: Audit, root: Path) -> dict[str, str]:
    """Files of the functions that the audit names: label -> path. Found without importing them."""
    stated = [*audit.baselines, *audit.ablations, *audit.controls]
    named = [audit.candidate, *[each.function for each in stated], audit.oracle.function]
    if (step := audit.workload) is not None:
        named += [step.step, step.host, step.inputs, step.candidate_step]
    found: dict[str, str] = {}
    for ref in named:
        if ref is None:
            continue
        if ref.file is not None:
            if not (root / ref.file).is_file():
                raise _nowhere(audit, ref, "a file beside the audit file")
            found[ref.file] = str(root / ref.file)
            continue
        try:
            spec = importlib.util.find_spec(str(ref.module))
        except ModuleNotFoundError:
            spec = None
        if spec is None:
            raise _nowhere(audit, ref, "a module that can be imported")
        if spec.origin:
            found[str(ref.module).replace(".", "/") + ".py"] = spec.origin
    return found


def _nowhere(audit: Audit, ref: FunctionRef, expected: str) -> AuditFileError:
    return AuditFileError(
        "a function whose file is not there",
        stage="audit",
        where=f"audit {audit.name!r}",
        expected=expected,
        got=ref.text,
    )


def _raised(error: BaseException, where: str) -> AuditFileError:
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "kernel_audit" not in each.filename]
    own = [each for each in frames if not each.filename.startswith("<frozen")]
    place = f"{where}, line {own[-1].lineno}: {own[-1].line}" if own else where
    if isinstance(error, SyntaxError):
        place = f"{where}, line {error.lineno}: {(error.text or '').strip()}"
    return AuditFileError(
        "the audit file raised while it was read",
        stage="audit",
        where=place,
        expected="a file that can be imported",
        got=f"{type(error).__name__}: {error}",
        next_command=f"python {where} shows the same error",
    )
