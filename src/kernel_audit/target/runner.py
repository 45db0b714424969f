"""A target runner from its command line to its exit code.

0   JSON on stdout, and nothing else there
1   a failure on the target: recorded in the output folder, explained on stderr
2   no target, or a request that cannot be honoured: explained on stderr, nothing recorded
130 told to stop, by Ctrl-C or a signal: nothing recorded
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kernel_audit.errors import AuditError, TargetError, from_parts
from kernel_audit.matrix.loading import model_file
from kernel_audit.target.attempt import Attempt, Failed
from kernel_audit.target.devices import require_target
from kernel_audit.target.request import SOLUTION, Request, parse
from kernel_audit.target.supervised import Ending, Send, supervised
from kernel_audit.worker.endings import exit_code_of

SCHEMA = "kernel-audit/target-run/1"


def main(arguments: Sequence[str], *, target: str, solution: Path) -> int:
    """Runs the request of a command line on a real `target` ("tpu" or "gpu"); `solution` is the project's own model file.

    The attempt is made in a process of its own, since a model may end its process or write past Python: this one starts no
    backend, imports no model, and is alone to write to stdout and into the output folder. Returns the exit code.
    """
    request = parse(arguments, target)
    return exit_code_of(
        lambda: _conclude(request, supervised(partial(attempt, request, target, solution), request.deadline_s))
    )


def attempt(request: Request, target: str, solution: Path, send: Send) -> None:
    """The request, told by messages: {"stage", "what", "record"} at the start of a stage, and one with "end": "fault" (its
    parts), "failed" or "completed" (the record).

    The backend is looked at before anything is allocated and before the model is imported.
    """
    try:
        device = require_target(target)
        file = _model_file(request, solution)
        _make_folder(request.out)
    except AuditError as fault:
        send({"end": "fault", "fault": fault.parts(), "exit_code": fault.exit_code})
        return
    made = Attempt(request, target, device, file, send)
    try:
        made.run()
    except Failed as failure:
        send({"end": "failed", "record": made.record, "failure": failure.record()})
        return
    send({"end": "completed", "record": made.record})


def _conclude(request: Request, ending: Ending) -> int:
    """Writes and says what came of it; gives the exit code."""
    answer = ending.answer
    if answer is None:
        answer = _without_an_answer(request, ending)
    if answer["end"] == "fault":
        fault = from_parts(answer["fault"])
        print(fault.text(), file=sys.stderr)
        return answer["exit_code"]
    record = {"schema": SCHEMA, "outcome": answer["end"], **answer["record"]}
    if answer["end"] == "completed":
        _write(request, record)
        print(_json(record))
        return 0
    failure = Failed(**answer["failure"])
    path = _write(request, {**record, "failure": failure.record()})
    print(_text(request, failure, path), file=sys.stderr)
    return 1


def _without_an_answer(request: Request, ending: Ending) -> dict[str, Any]:
    """What the process would have said, had it been able to."""
    if not ending.told:  # it ended while it looked for the target: nothing of the model has run
        fault = TargetError(
            "the search for the target ended without an answer; nothing was run",
            stage="target",
            where="a process of its own",
            expected="a backend, or an error that says why there is none",
            got=ending.ended,
        )
        return {"end": "fault", "fault": fault.parts(), "exit_code": fault.exit_code}
    last = ending.told[-1]
    what = "the attempt ended without a result"
    expected = f"{request.lesson.function} to complete, and its process with it"
    failure = {"stage": last["stage"], "what": what, "expected": expected, "got": ending.ended}
    return {"end": "failed", "record": last["record"], "failure": failure}


def _model_file(request: Request, solution: Path) -> Path:
    if request.implementation == SOLUTION:
        return solution.resolve()
    return model_file(request.implementation, stage="target").resolve()


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
