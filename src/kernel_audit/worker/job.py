"""What is asked of a worker, and what came of it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_audit.errors import AuditError, from_parts

GIB = 1 << 30
OUTCOMES = ("finished", "raised", "crashed", "timed-out", "out-of-memory", "forged-output")


@dataclass(frozen=True)
class Job:
    """One call of `function` in a fresh worker.

    `function` is "module:function"; the worker calls `function(steps, **arguments)` and the function returns
    a JSON-able value. `steps` (see `Steps`) hands over values and arrays while the job still runs.

    `folder` is made if it is missing and must not have held a job before. Everything that the worker writes
    goes there; where the machine allows it, all other files are read-only to the worker, except the existing
    paths in `writable`.

    `deadline_s` counts from the last progress: the start, or the begin or finish of a step. `total_s` bounds
    the whole job; give it where the code in the worker might go on making steps for ever.

    `memory_bytes` is what the worker may allocate on top of what the zygote had.

    `environment` is set in the worker before any JAX backend starts (so `XLA_FLAGS` works); the platform is
    "cpu" unless it sets JAX_PLATFORMS. `jax_config` is passed to `jax.config.update`, one call an entry;
    `import_path` comes first in `sys.path`.

    `loopback`: the worker's own network has a loopback interface, and still no other: for processes of one job that talk to
    each other.
    """

    function: str
    arguments: Mapping[str, Any]
    folder: Path
    deadline_s: float
    memory_bytes: int = 8 * GIB
    environment: Mapping[str, str] = field(default_factory=dict)
    jax_config: Mapping[str, Any] = field(default_factory=dict)
    import_path: tuple[str, ...] = ()
    writable: tuple[Path, ...] = ()
    total_s: float | None = None
    loopback: bool = False


@dataclass(frozen=True)
class JobResult:
    """What came of a job.

    `outcome` is one of OUTCOMES. `value` is what the function returned (outcome "finished"), otherwise None.

    `error` is None for "finished". For an AuditError that the function raised it holds the error's parts (key
    "what", see `audit_error`); otherwise "type", "message" and "where".

    `steps` maps the id of each finished step to its value, in the order in which they were begun; they count
    whatever the outcome. `step_in_progress` is the step that was begun and not finished.

    `exit_code` or `signal` is what ended the worker (both None when nobody could say). `stdout` and `stderr`
    hold the first and the last 64 KiB. `peak_bytes` is the largest resident size, with about 0.2 GB that the
    worker shares with the zygote. `isolation` says what held: see `worker.sandbox`. `seconds` is wall time
    from the fork to the end.
    """

    outcome: str
    value: Any = None
    error: Mapping[str, Any] | None = None
    signal: int | None = None
    exit_code: int | None = None
    stdout: str = ""
    stderr: str = ""
    steps: Mapping[str, Any] = field(default_factory=dict)
    step_in_progress: str | None = None
    peak_bytes: int = 0
    isolation: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def audit_error(self) -> AuditError | None:
        """The AuditError that the function raised, ready to raise again; None when it raised no such error."""
        if self.error is None or "what" not in self.error:
            return None
        return from_parts(self.error)


def request_of(job: Job) -> dict[str, Any]:
    """The job as the message that a zygote reads; paths absolute."""
    return {
        "function": job.function,
        "arguments": dict(job.arguments),
        "folder": str(job.folder.resolve()),
        "memory_bytes": job.memory_bytes,
        "environment": dict(job.environment),
        "jax_config": dict(job.jax_config),
        "import_path": [str(Path(each).resolve()) for each in job.import_path],
        "writable": [str(each.resolve()) for each in job.writable],
        "loopback": job.loopback,
    }


def default_python() -> str:
    """The interpreter that runs the parent."""
    return sys.executable
