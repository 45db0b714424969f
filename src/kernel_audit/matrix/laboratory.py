"""Jobs of an audit, each run once: what has finished is kept in the work folder and taken from there when resumed."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.records import digest_of, encode
from kernel_audit.worker import GIB, Job, JobResult, Pool

# Modules that jobs need, imported once by each zygote instead of in every worker.
PRELOAD = tuple(
    f"kernel_audit.matrix.{name}"
    for name in ("audit_job", "check_job", "lift_job", "oracle_job", "refusal_job", "subject_job")
)


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
    its result was written, in one rename. `roots` are the folders of the audit and of a candidate put in its place,
    first on the workers' import path. `references`, where given, keeps the jobs that know nothing of the candidate, so
    that several candidates under one contract share them.
    """

    pool: Pool
    work: Path
    roots: list[Path]
    limits: Limits = field(default_factory=Limits)
    size: int = 2
    references: Path | None = None

    def __post_init__(self) -> None:
        # A worker runs in a folder of its own, so places that it is told must be whole.
        self.work = self.work.resolve()
        self.references = self.references.resolve() if self.references is not None else None
        self._threads = ThreadPoolExecutor(max_workers=self.size + 4)
        self._lock = threading.Lock()
        self.isolation: dict[str, Any] = {}

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
        reference: bool = False,
    ) -> Done:
        """The result of one job, from memory where it is there. `reference`: it knows nothing of the candidate."""
        home = self.references if reference and self.references is not None else self.work
        asked = digest_of({"function": function, "arguments": arguments, "jax_config": jax_config or {}})
        label = f"{name}-{asked[7:19]}"
        remembered = _remembered(home, label)
        if remembered is not None:
            self.isolation = dict(remembered.result.isolation)
            return remembered
        folder = self._fresh_folder(home, label)
        job = Job(
            function=function,
            arguments=arguments,
            folder=folder,
            deadline_s=self.limits.deadline_s,
            memory_bytes=self.limits.memory_bytes,
            jax_config=jax_config or {},
            import_path=tuple(str(each) for each in self.roots),
        )
        result = self.pool.run(job)
        self.isolation = dict(result.isolation)
        if result.outcome == "finished":  # what did not may end otherwise when the audit is resumed
            _remember(home, label, result, folder)
        return Done(result, folder)

    def finished_steps(self) -> int:
        """Steps that all jobs have finished so far, running ones included."""
        return sum(1 for _ in self.work.glob("jobs/*/steps/*.json"))

    def _fresh_folder(self, home: Path, label: str) -> Path:
        with self._lock:
            attempt = 0
            while (folder := home / "jobs" / f"{label}-{attempt}").exists():
                attempt += 1
            folder.mkdir(parents=True)
            return folder


def _remember(home: Path, label: str, result: JobResult, folder: Path) -> None:
    place = home / "done" / f"{label}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    unfinished = place.with_suffix(".tmp")
    unfinished.write_bytes(encode({"folder": folder.name, "result": asdict(result)}))
    unfinished.replace(place)


def _remembered(home: Path, label: str) -> Done | None:
    place = home / "done" / f"{label}.json"
    if not place.exists():
        return None
    data = msgspec.json.decode(place.read_bytes())
    return Done(JobResult(**data["result"]), home / "jobs" / data["folder"])
