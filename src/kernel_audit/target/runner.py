"""A target runner from its command line to its exit code.

0   JSON on stdout, and nothing else there
1   a failure on the target: recorded in the output folder, explained on stderr
2   no target, or a request that cannot be honoured: explained on stderr, nothing recorded
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from kernel_audit.errors import AuditError
from kernel_audit.target.attempt import Attempt, Failed
from kernel_audit.target.devices import require_target
from kernel_audit.target.request import SOLUTION, Request, parse

SCHEMA = "kernel-audit/target-run/1"


def main(arguments: Sequence[str], *, target: str, solution: Path) -> int:
    """Runs the request of a command line on a real `target` ("tpu" or "gpu"); `solution` is the project's own model file.

    The backend is looked at before anything is allocated and before the model is imported. Returns the exit code.
    """
    request = parse(arguments, target)
    try:
        device = require_target(target)
        file = _model_file(request, solution)
        _make_folder(request.out)
    except AuditError as fault:
        print(fault.text(), file=sys.stderr)
        return fault.exit_code
    return _attempt(request, target, device, file)


def _attempt(request: Request, target: str, device: jax.Device, file: Path) -> int:
    attempt = Attempt(request, target, device, file)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout is for the record alone, whatever the model prints
            attempt.run()
    except Failed as failure:
        record = {"schema": SCHEMA, "outcome": "failed", **attempt.record, "failure": failure.record()}
        path = _write(request, record)
        print(_text(request, failure, path), file=sys.stderr)
        return 1
    record = {"schema": SCHEMA, "outcome": "completed", **attempt.record}
    _write(request, record)
    print(_json(record))
    return 0


def _model_file(request: Request, solution: Path) -> Path:
    file = solution if request.implementation == SOLUTION else Path(request.implementation)
    if not file.is_file():
        raise AuditError(
            "no such model file",
            stage="target",
            where=f"--implementation {request.implementation}",
            expected=f"a Python file, or {SOLUTION!r}",
            got="nothing there",
        )
    return file.resolve()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AuditError(
            "the folder for the records cannot be made",
            stage="target",
            where=f"--out {folder}",
            expected="a folder, or a name that is free",
            got=error.strerror or str(error),
        ) from None


def _write(request: Request, record: dict[str, Any]) -> Path:
    """Writes a record under a name of its own: no run replaces what an earlier one left."""
    outcome = record["outcome"]
    number = 1
    while True:
        path = request.out / f"{request.name()}-{outcome}-{number}.json"
        try:
            with path.open("x", encoding="utf-8") as stream:
                stream.write(_json(record) + "\n")
            return path
        except FileExistsError:
            number += 1


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, indent=2, sort_keys=True, allow_nan=False)


def _text(request: Request, failure: Failed, path: Path) -> str:
    return AuditError(
        failure.what,
        stage=f"target, {failure.stage}",
        where=request.name(),
        expected=failure.expected,
        got=failure.got,
        next_command=f"the failure is recorded in {path}",
    ).text()
