"""A pool of zygotes: jobs in, results out, nothing left behind."""

from __future__ import annotations

import concurrent.futures
import contextlib
import queue
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Self

from kernel_audit.errors import EnvironmentFault, InternalError
from kernel_audit.worker.job import Job, JobResult, default_python
from kernel_audit.worker.nursery import Zygote, ZygoteUnfit
from kernel_audit.worker.steps import RESULT_FILE, SCRATCH_FOLDER, STEPS_FOLDER

as_completed = concurrent.futures.as_completed


class Pool:
    """Runs up to `size` jobs at once, each in a worker of its own.

    Returns at once: the zygotes start side by side while the caller does other things, and the first jobs
    wait for them. Use it as a context manager, or call `close`. A zygote that dies is replaced; its job ends
    as "crashed" with an error of type "WorkerLost". `preload` names modules of ours that every job needs;
    none may start a thread or a backend.

    `restarts` counts the zygotes that were replaced.
    """

    def __init__(self, size: int = 1, python: str | None = None, preload: tuple[str, ...] = ()) -> None:
        self._python = python or default_python()
        self._preload = preload
        self._jobs: queue.SimpleQueue[tuple[Job, Future[JobResult]] | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._zygotes: dict[int, Zygote] = {}
        self.restarts = 0
        self._threads = [
            threading.Thread(target=self._serve, args=(slot,), name=f"worker-{slot}", daemon=True)
            for slot in range(size)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, job: Job) -> Future[JobResult]:
        """Queues a job. The future raises EnvironmentFault when workers cannot start, or when the pool closes.

        Raises InternalError at once when the job's folder has held a job before, or the pool is closed.
        """
        if self._closing.is_set():
            raise InternalError("the pool is closed", stage="workers", where=job.function)
        _prepare(job.folder)
        future: Future[JobResult] = Future()
        self._jobs.put((job, future))
        return future

    def run(self, job: Job) -> JobResult:
        """Queues a job and waits for its result. Raises as `submit` and its future do."""
        return self.submit(job).result()

    def zygote_pids(self) -> list[int]:
        """Process ids of the zygotes that are up."""
        return [zygote.pid for zygote in list(self._zygotes.values())]

    def close(self) -> None:
        """Stops running jobs, cancels waiting ones, and returns when every process is gone."""
        self._closing.set()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        while True:
            try:
                entry = self._jobs.get_nowait()
            except queue.Empty:
                return
            if entry is not None:
                entry[1].cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _serve(self, slot: int) -> None:
        """One thread a zygote: it waits on sockets and does little else."""
        fault: EnvironmentFault | None = None
        try:
            self._start(slot)
        except EnvironmentFault as error:
            fault = error  # told to everyone who asks: what cannot start once cannot start for the next job
        while (entry := self._jobs.get()) is not None:
            job, future = entry
            if self._closing.is_set() or not future.set_running_or_notify_cancel():
                future.cancel()
                continue
            try:
                if fault is not None:
                    raise fault
                future.set_result(self._run(slot, job))
            except BaseException as error:
                future.set_exception(error)
        self._end(slot)

    def _run(self, slot: int, job: Job) -> JobResult:
        if slot not in self._zygotes or not self._zygotes[slot].alive():
            self._replace(slot)
        try:
            result = self._attempt(slot, job)
        except ZygoteUnfit:
            self._replace(slot)
            try:
                result = self._attempt(slot, job)
            except ZygoteUnfit as error:
                raise EnvironmentFault(
                    "two zygotes in a row could not fork", stage="workers", where=job.function, got=str(error)
                ) from None
        if self._closing.is_set() and result.outcome != "finished":
            raise EnvironmentFault("the pool was closed while the job ran", stage="workers", where=job.function)
        return result

    def _attempt(self, slot: int, job: Job) -> JobResult:
        return self._zygotes[slot].run(job, lambda: not self._closing.is_set())

    def _start(self, slot: int) -> None:
        try:
            zygote = Zygote(self._python, self._preload)
        except OSError as error:
            raise EnvironmentFault(
                "the Python interpreter cannot be run", stage="start of workers", where=self._python, got=str(error)
            ) from None
        try:
            zygote.ready()
        except EnvironmentFault:
            zygote.close()
            raise
        self._zygotes[slot] = zygote

    def _replace(self, slot: int) -> None:
        self._end(slot)
        self.restarts += 1
        self._start(slot)

    def _end(self, slot: int) -> None:
        zygote = self._zygotes.pop(slot, None)
        if zygote is not None:
            zygote.close()


def _prepare(folder: Path) -> None:
    """Makes the job's folder. A folder serves one job, so that nothing in it can be from another."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        (folder / STEPS_FOLDER).mkdir()
        if not (folder / RESULT_FILE).exists():
            (folder / SCRATCH_FOLDER).mkdir(exist_ok=True)
            return
    raise InternalError("a job's folder is used once", stage="workers", where=folder.name)
