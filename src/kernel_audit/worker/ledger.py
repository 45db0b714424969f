"""The parent's side of a job folder: what was finished, what is in progress, and what was forged."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

from kernel_audit.worker.arrays import altered
from kernel_audit.worker.seal import BrokenSeal, Unseal
from kernel_audit.worker.steps import RESULT_FILE, RESULT_SCHEMA, STEP_SCHEMA, STEPS_FOLDER, file_stem

_NAMES = re.compile(r"[0-9a-f]{32}\.(begun|json|bin|tmp)")
_RECORD_BYTES = 256 << 20  # a larger record is not ours


class Ledger:
    """Reads a job's sealed files as they appear. `forgery` is the first thing found that the harness did not write."""

    def __init__(self, folder: Path, unseal: Unseal) -> None:
        self._folder = folder
        self._steps = folder / STEPS_FOLDER
        self._unseal = unseal
        self._seen: set[str] = set()
        self._stamp: int | None = None
        self._begun: dict[int, str] = {}
        self._finished: dict[int, dict[str, Any]] = {}
        self.forgery: str | None = None

    def refresh(self, *, force: bool = False) -> bool:
        """Reads what is new; True when a step was begun or finished since the last time."""
        try:
            stamp = os.stat(self._steps).st_mtime_ns
            if stamp == self._stamp and not force:
                return False
            self._stamp = stamp
            names = os.listdir(self._steps)
        except OSError as error:
            self._forged(f"{STEPS_FOLDER}/: {error.strerror}")
            return False
        new = sorted(set(names) - self._seen)
        progress = False
        for name in new:
            if not _NAMES.fullmatch(name):
                self._forged(f"{STEPS_FOLDER}/{name}: no file of the harness")
            elif name.endswith((".begun", ".json")):
                self._seen.add(name)
                progress |= self._read_step(name)
        return progress

    def conclude(self) -> dict[str, Any] | None:
        """After everything of the job has ended: the sealed result, or None where there is none. Checks arrays too."""
        self.refresh(force=True)
        for body in self._finished.values():
            self._check_arrays(body)
        result = self._sealed(self._folder / RESULT_FILE)
        if result is None:
            return None
        if result.get("schema") != RESULT_SCHEMA or result.get("kind") != "result":
            self._forged(f"{RESULT_FILE}: not a result")
            return None
        if result["steps"] != len(self._finished):
            self._forged(f"{STEPS_FOLDER}/: {result['steps']} steps were finished, {len(self._finished)} are left")
        return result

    def values(self) -> dict[str, Any]:
        """The value of each finished step, in the order in which they were begun."""
        return {body["step"]: body["value"] for _, body in sorted(self._finished.items())}

    def in_progress(self) -> str | None:
        """The step that was begun and not finished."""
        return next((step for index, step in self._begun.items() if index not in self._finished), None)

    def _read_step(self, name: str) -> bool:
        body = self._sealed(self._steps / name)
        if body is None:
            return False
        kind = "begun" if name.endswith(".begun") else "finished"
        if (
            body.get("schema") != STEP_SCHEMA
            or body.get("kind") != kind
            or not name.startswith(file_stem(body["step"]))
        ):
            self._forged(f"{STEPS_FOLDER}/{name}: the record of another step")
            return False
        if kind == "begun":
            self._begun[body["index"]] = body["step"]
        else:
            self._finished[body["index"]] = body
        return True

    def _check_arrays(self, body: dict[str, Any]) -> None:
        if not body["arrays"]:
            return
        name = altered((self._steps / file_stem(body["step"])).with_suffix(".bin"), body["arrays"])
        if name is not None:
            self._forged(f"step {body['step']}: array {name} is not what was finished")

    def _sealed(self, path: Path) -> dict[str, Any] | None:
        """The body of a sealed file; None when there is no such file or it is forged."""
        where = str(path.relative_to(self._folder))
        try:
            body = self._unseal(_read_plain(path))
        except FileNotFoundError:
            return None
        except (BrokenSeal, OSError, ValueError) as error:
            self._forged(f"{where}: {error}")
            return None
        if body["displaced"]:
            self._forged(f"{where}: a file of this name was there before the harness wrote it")
        return body

    def _forged(self, evidence: str) -> None:
        if self.forgery is None:
            self.forgery = evidence


def _read_plain(path: Path) -> bytes:
    """The bytes of a plain file; neither a link nor a pipe is followed, since what made it may mean harm."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _RECORD_BYTES:
            raise ValueError("not a plain file of a record's size")
        with open(descriptor, "rb", closefd=False) as stream:
            return stream.read()
    finally:
        os.close(descriptor)
