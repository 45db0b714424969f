"""Jobs on a device: each in a fresh process without a sandbox, since drivers of accelerators do not work in one.

Such a process is given programs as bytes and the tool's own code, never a candidate's file. It ends, and whatever it started in
its process group with it. It has the interface of `Pool` as far as jobs one after another need it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from kernel_audit.worker.job import Job, JobResult, default_python, request_of
from kernel_audit.worker.ledger import Ledger
from kernel_audit.worker.perform import perform
from kernel_audit.worker.seal import new_key, sealer, unsealer
from kernel_audit.worker.steps import SCRATCH_FOLDER, STEPS_FOLDER
from kernel_audit.worker.verdict import Seen, judge

_TICK_S = 0.02
_SAID = 64 << 10


class Unconfined:
    """Runs one job at a time. `environment` comes on top of this process's own; JAX_* and XLA_* settings of the user hold."""

    isolation = {"network": "open", "files": "open", "process_group": True}

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self._environment = dict(environment or {})

    def run(self, job: Job) -> JobResult:
        """The job's result. Its folder must not have held a job before."""
        for name in (STEPS_FOLDER, SCRATCH_FOLDER):
            (job.folder / name).mkdir(parents=True)
        key = new_key()
        ledger = Ledger(job.folder.resolve(), unsealer(key))
        with tempfile.TemporaryFile() as said:
            process = self._start(job, said)
            started = time.monotonic()
            try:
                order = json.dumps({"key": key.hex(), "request": request_of(job)}).encode()
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.write(order)  # type: ignore[union-attr]
                    process.stdin.close()  # type: ignore[union-attr]
                overdue = _followed(job, ledger, process)
            finally:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                status = process.wait()
            seconds = time.monotonic() - started
            said.seek(max(0, said.seek(0, os.SEEK_END) - _SAID))
            text = said.read().decode(errors="replace")
        result = ledger.conclude()
        waited = status << 8 if status >= 0 else -status
        outcome, error = judge(Seen(result, ledger.forgery, overdue, waited, None, text))
        return JobResult(
            outcome=outcome,
            value=result.get("value") if outcome == "finished" and result else None,
            error=error,
            signal=-status if status < 0 else None,
            exit_code=status if status >= 0 else None,
            stderr=text,
            steps=ledger.values(),
            step_in_progress=ledger.in_progress(),
            isolation=dict(self.isolation),
            seconds=seconds,
        )

    def _start(self, job: Job, said: Any) -> subprocess.Popen[bytes]:
        import kernel_audit

        home = str(Path(kernel_audit.__path__[0]).parent)
        paths = [home, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        environment = {**os.environ, **self._environment, **job.environment}
        environment["PYTHONPATH"] = os.pathsep.join(each for each in paths if each)
        return subprocess.Popen(
            [default_python(), "-P", "-m", "kernel_audit.worker.unconfined"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )


def _followed(job: Job, ledger: Ledger, process: subprocess.Popen[bytes]) -> str | None:
    """Waits for the end, or for a deadline, which it says."""
    started = progress = time.monotonic()
    while process.poll() is None:
        time.sleep(_TICK_S)
        now = time.monotonic()
        if ledger.refresh():
            progress = now
        if job.total_s is not None and now - started > job.total_s:
            return f"the job took more than {job.total_s:g} s"
        if now - progress > job.deadline_s and not ledger.refresh(force=True):
            return f"no progress for {job.deadline_s:g} s in step {ledger.in_progress()}"
    return None


def _main() -> None:
    order = json.loads(sys.stdin.buffer.read())
    request = order["request"]
    # As the user has it: JAX itself is to say which backend there is.
    request["environment"].setdefault("JAX_PLATFORMS", os.environ.get("JAX_PLATFORMS", ""))
    perform(request, sealer(bytearray.fromhex(order["key"])))


if __name__ == "__main__":
    _main()
