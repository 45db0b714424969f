"""Jobs of an audit, each run once: what has finished is kept in the work folder and taken from there when resumed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.errors import InternalError
from kernel_audit.records import digest_of, encode
from kernel_audit.worker import GIB, Job, JobResult, Pool


@dataclass(frozen=True)
class Limits:
    """What a job may take: seconds without progress, and bytes on top of what a fresh worker has."""

    deadline_s: float = 60.0
    memory_bytes: int = 8 * GIB


@dataclass(frozen=True)
class Done:
    """A job's result and the folder that holds its arrays."""

    result: JobResult
    folder: Path


@dataclass
class Laboratory:
    """Runs named jobs on a pool and remembers each under `work`/done.

    A name with the same function and arguments is run once, also over a kill of the parent: a job counts as done when
    its result was written, in one rename.
    `roots` are the folders of the audit and of a candidate put in its place, first on the workers' import path.
    """

    pool: Pool
    work: Path
    roots: list[Path]
    limits: Limits = field(default_factory=Limits)
    size: int = 2

    def __post_init__(self) -> None:
        self._threads = ThreadPoolExecutor(max_workers=self.size + 4)
        self._lock = threading.Lock()
        self._ran: set[str] = set()
        self.isolation: dict[str, Any] = {}
        (self.work / "done").mkdir(parents=True, exist_ok=True)

    def close(self) -> None:
        """Waits for nothing: threads that still wait for a job end with the pool."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def start(self, call: Any, *arguments: Any, **keywords: Any) -> Future[Any]:
        """Runs `call` beside others; several of its jobs may wait for a worker at once."""
        return self._threads.submit(call, *arguments, **keywords)

    def run(
        self,
        name: str,
        function: str,
        arguments: Mapping[str, Any],
        *,
        jax_config: Mapping[str, Any] | None = None,
    ) -> Done:
        """The result of one job, from memory where it is there."""
        asked = digest_of({"function": function, "arguments": arguments, "jax_config": jax_config or {}})
        remembered = self._remembered(name, asked)
        if remembered is not None:
            return remembered
        folder = self._fresh_folder(name)
        job = Job(
            function=function,
            arguments=arguments,
            folder=folder,
            deadline_s=self.limits.deadline_s,
            memory_bytes=self.limits.memory_bytes,
            jax_config=jax_config or {},
            import_path=tuple(str(each) for each in self.roots),
        )
        self._ran.add(name)
        result = self.pool.run(job)
        self.isolation = dict(result.isolation)
        self._remember(name, asked, result, folder)
        return Done(result, folder)

    def finished_steps(self) -> int:
        """Steps that all jobs have finished so far, running ones included."""
        return sum(1 for _ in self.work.glob("jobs/*/steps/*.json"))

    def _fresh_folder(self, name: str) -> Path:
        with self._lock:
            attempt = 0
            while (folder := self.work / "jobs" / f"{name}-{attempt}").exists():
                attempt += 1
            folder.mkdir(parents=True)
            return folder

    def _remember(self, name: str, asked: str, result: JobResult, folder: Path) -> None:
        data = {"asked": asked, "folder": folder.name, "result": asdict(result)}
        unfinished = self.work / "done" / f"{name}.tmp"
        unfinished.write_bytes(encode(data))
        unfinished.replace(self.work / "done" / f"{name}.json")

    def _remembered(self, name: str, asked: str) -> Done | None:
        path = self.work / "done" / f"{name}.json"
        if not path.exists():
            return None
        data = msgspec.json.decode(path.read_bytes())
        if data["asked"] != asked:
            if name in self._ran:
                raise InternalError(
                    "two jobs of one name", stage="observe", where=name, expected=data["asked"], got=asked
                )
            return None  # left by an audit that asked something else
        return Done(JobResult(**data["result"]), self.work / "jobs" / data["folder"])
