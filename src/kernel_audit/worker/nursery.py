"""The parent's side of one zygote: starts it, hands it one job at a time, sees each job to its end."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kernel_audit
from kernel_audit.errors import EnvironmentFault
from kernel_audit.worker import wire
from kernel_audit.worker.job import Job, JobResult, request_of
from kernel_audit.worker.ledger import Ledger
from kernel_audit.worker.seal import new_key, unsealer
from kernel_audit.worker.verdict import Seen, judge

# What a worker gets of the parent's environment. Everything else stays outside: tokens, seeds, JAX_* and
# XLA_* settings.
PASSED_ON = (
    "CUDA_VISIBLE_DEVICES",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONPATH",
    "TPU_LIBRARY_PATH",
    "TPU_VISIBLE_CHIPS",
    "TZ",
    "VIRTUAL_ENV",
)

START_S = 120.0  # to import JAX on a cold and busy machine
_SET_UP_S = 30.0  # from the request to the first line of the job
_STOP_S = 10.0  # from the order to stop to the last word
_TICK_S = 0.03  # between two looks at the job's folder


class ZygoteUnfit(Exception):
    """The zygote refused to fork; a new one can do the job."""


class Zygote:
    """One zygote process. Made at once; `ready` waits for its imports.

    Raises OSError when there is no such interpreter.
    """

    def __init__(self, python: str, preload: tuple[str, ...] = ()) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the zygote; `close` closes it)
        self._control, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = self._spawn(python, theirs.fileno(), preload)
            except OSError:
                self._control.close()
                self._log.close()
                raise
        self.pid = self._process.pid

    def _spawn(self, python: str, control: int, preload: tuple[str, ...]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [python, "-P", "-m", "kernel_audit.worker.zygote", str(control), *preload],
            pass_fds=[control],
            env=_environment(),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,  # a Ctrl-C in the terminal is the parent's to handle
        )

    def ready(self) -> dict[str, Any]:
        """Waits for the imports. Raises EnvironmentFault when the interpreter cannot make them."""
        message = self._next(START_S)
        if message is None or "hello" not in message:
            raise EnvironmentFault(
                "the process that forks workers did not start",
                stage="start of workers",
                where=" ".join(str(each) for each in self._process.args),
                expected="JAX, ml_dtypes and jax.experimental.pallas.tpu to be importable",
                got=self._why_not(message),
                next_command="kernel-audit doctor",
            )
        return message

    def run(self, job: Job, wanted: Callable[[], bool]) -> JobResult:
        """Runs a job to its end; stops it when `wanted()` turns False.

        Raises ZygoteUnfit when this zygote cannot fork any more, EnvironmentFault when the worker cannot be set up.
        """
        key = new_key()
        ledger = Ledger(job.folder.resolve(), unsealer(key))
        try:
            wire.send(self._control, request_of(job))
            wire.send_bytes(self._control, key)
        except OSError:
            raise ZygoteUnfit("the zygote is gone") from None
        isolation = self._started()
        started = time.monotonic()
        end, overdue = self._follow(job, ledger, wanted)
        seconds = time.monotonic() - started
        if "ended" in end:
            self._await_done()
        return _result(ledger, end, overdue, isolation, seconds)

    def alive(self) -> bool:
        """Whether it could take another job."""
        return self._process.poll() is None

    def close(self) -> None:
        """Ends the zygote and whatever it still runs; returns when it is gone."""
        self._control.close()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _started(self) -> dict[str, Any]:
        message = self._next(_SET_UP_S)
        if message is None:
            self._process.kill()
            raise ZygoteUnfit("the zygote does not answer")
        if "refused" in message or "gone" in message:
            raise ZygoteUnfit(message.get("refused") or message["gone"])
        if "started" not in message:
            if "failed" in message:
                self._await_done()
            raise EnvironmentFault(
                "a worker could not be set up",
                stage="start of a worker",
                where="worker sandbox",
                got=message.get("failed") or _warden_ended(message),
                next_command="kernel-audit doctor",
            )
        return message["started"]

    def _follow(self, job: Job, ledger: Ledger, wanted: Callable[[], bool]) -> tuple[dict[str, Any], str | None]:
        """Waits for the end. The second part says which deadline passed."""
        started = progress = time.monotonic()
        while True:
            message = self._next(_TICK_S)
            if message is not None:
                return message, None
            overdue = _overdue(job, ledger, time.monotonic() - progress, time.monotonic() - started)
            if ledger.refresh(force=overdue is not None):
                progress = time.monotonic()
                continue
            if overdue or ledger.forgery or not wanted():
                return self._stop(), overdue

    def _await_done(self) -> None:
        """After this the zygote is idle, and no message is left over for the next job to read."""
        message = self._next(_STOP_S)
        if message is None or "done" not in message:
            self._process.kill()

    def _stop(self) -> dict[str, Any]:
        with contextlib.suppress(OSError):
            wire.send(self._control, {"stop": True})
        message = self._next(_STOP_S)
        if message is None:
            self._process.kill()  # its warden and worker end with it
            message = self._next(_STOP_S)
        return message or {"gone": "the worker did not end when it was told to"}

    def _next(self, timeout_s: float) -> dict[str, Any] | None:
        """The next message; None after `timeout_s`; {"gone": ...} when zygote and warden are."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        if not poll.poll(timeout_s * 1000):
            return None
        try:
            return wire.receive(self._control)
        except (EOFError, OSError):
            return {"gone": f"the zygote ended ({self._last_words()})"}

    def _why_not(self, message: dict[str, Any] | None) -> str:
        if message is None:
            return f"no answer in {START_S:g} s"
        return message.get("failed") or message["gone"]

    def _last_words(self) -> str:
        """The end of what the zygote printed."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        size = os.fstat(self._log.fileno()).st_size
        text = os.pread(self._log.fileno(), 2000, max(0, size - 2000)).decode(errors="replace").strip()
        return text or f"exit status {self._process.returncode}"


def _result(
    ledger: Ledger, end: dict[str, Any], overdue: str | None, isolation: dict[str, Any], seconds: float
) -> JobResult:
    ended = end.get("ended") or {}
    lost = end.get("gone")
    if "done" in end:
        lost = _warden_ended(end)
    if ended.get("stopped_by") == "zygote":
        lost = "the zygote ended while the job ran"
    status = ended.get("status")
    result = ledger.conclude()
    forgery = ledger.forgery
    if forgery is None and ended.get("imitation"):
        forgery = f"output that imitates a record: {ended['imitation']}"
    outcome, error = judge(Seen(result, forgery, overdue, status, lost, ended.get("stderr", "")))
    return JobResult(
        outcome=outcome,
        value=result["value"] if outcome == "finished" and result else None,
        error=error,
        signal=os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else None,
        exit_code=os.WEXITSTATUS(status) if status is not None and os.WIFEXITED(status) else None,
        stdout=ended.get("stdout", ""),
        stderr=ended.get("stderr", ""),
        steps=ledger.values(),
        step_in_progress=ledger.in_progress(),
        peak_bytes=ended.get("peak_bytes", 0),
        isolation=isolation,
        seconds=seconds,
    )


def _warden_ended(message: dict[str, Any]) -> str:
    return f"the warden ended early, with wait status {message['done']}"


def _overdue(job: Job, ledger: Ledger, since_progress_s: float, since_start_s: float) -> str | None:
    if job.total_s is not None and since_start_s > job.total_s:
        return f"the job took more than {job.total_s:g} s"
    if since_progress_s > job.deadline_s:
        step = ledger.in_progress()
        where = f"in step {step}" if step else "outside any step"
        return f"no progress for {job.deadline_s:g} s {where}"
    return None


def _environment() -> dict[str, str]:
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    package = str(Path(kernel_audit.__path__[0]).parent)
    paths = [package, *passed.get("PYTHONPATH", "").split(os.pathsep)]
    passed["PYTHONPATH"] = os.pathsep.join(each for each in paths if each)
    passed["OPENBLAS_NUM_THREADS"] = "1"  # NumPy's BLAS would start threads when it is imported
    return passed
