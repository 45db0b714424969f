"""What a worker does: set up JAX, call the job's function, write the result, end."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any, NoReturn

from kernel_audit.errors import AuditError
from kernel_audit.worker import sandbox
from kernel_audit.worker.seal import Seal
from kernel_audit.worker.steps import SCRATCH_FOLDER, Steps

_MESSAGE_CHARACTERS = 8000


def perform(request: dict[str, Any], seal: Seal) -> NoReturn:
    """Runs the job in this process and ends it. The caller's frames must not hold the seal."""
    steps = Steps(Path(request["folder"]), seal)
    del seal
    try:
        _enter(request)
        ending = {"value": _call(request, steps)}
        steps.conclude(ending)
    except BaseException as error:  # SystemExit and MemoryError included: they are the job's outcome
        sandbox.use_reserve()
        _print_error(error)
        ending = {"error": describe(error)}
        steps.conclude(ending)
    _flush()
    os._exit(0)  # no exit handlers: a backend may hang in them, and the job's code may have left some


def _enter(request: dict[str, Any]) -> None:
    """Environment, working folder, import path and JAX settings of the job."""
    scratch = str(Path(request["folder"], SCRATCH_FOLDER))
    os.environ.update(HOME=scratch, TMPDIR=scratch)
    os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "1"  # libtpu would want a lock file in /tmp, which is read-only here
    os.environ.update(request["environment"])
    tempfile.tempdir = None
    os.chdir(scratch)
    sys.path[:0] = request["import_path"]
    import jax

    # JAX read this variable when the zygote imported it.
    jax.config.update("jax_platforms", request["environment"].get("JAX_PLATFORMS", "cpu"))
    for name, value in request["jax_config"].items():
        jax.config.update(name, value)


def _call(request: dict[str, Any], steps: Steps) -> Any:
    module, _, name = request["function"].partition(":")
    function = getattr(importlib.import_module(module), name)
    return function(steps, **request["arguments"])


def describe(error: BaseException) -> dict[str, Any]:
    """An error as data: the parts of an AuditError, otherwise its type, message and place."""
    if isinstance(error, AuditError):
        return error.parts()
    try:
        message = str(error)[:_MESSAGE_CHARACTERS]
    except Exception:
        message = "(its message cannot be read)"
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    return {"type": type(error).__name__, "message": message, "where": where}


def _print_error(error: BaseException) -> None:
    with contextlib.suppress(BaseException):
        traceback.print_exception(error)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()
