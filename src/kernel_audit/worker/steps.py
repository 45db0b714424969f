"""A worker's side of its job folder: steps that become visible one by one, and the result.

    FOLDER/steps/<name>.begun    sealed: the step was begun
    FOLDER/steps/<name>.bin      the step's arrays, raw
    FOLDER/steps/<name>.json     sealed: the step's value and the places and digests of its arrays
    FOLDER/result.json           sealed: the returned value or the error, and how many steps there were
    FOLDER/scratch/              the worker's working, home and temporary folder

<name> is a digest of the step's id. Each file appears complete, by renaming. An in-process attacker can find
the object below and call it; see `worker.seal` for what that buys.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_audit.errors import InternalError
from kernel_audit.worker.arrays import read_buffers, write_buffers
from kernel_audit.worker.seal import Seal, body_of

if TYPE_CHECKING:
    import numpy as np

STEP_SCHEMA = "kernel-audit/worker-step/1"
RESULT_SCHEMA = "kernel-audit/worker-result/1"
STEPS_FOLDER = "steps"
SCRATCH_FOLDER = "scratch"
RESULT_FILE = "result.json"


def file_stem(step: str) -> str:
    """The name of a step's files."""
    return hashlib.sha256(step.encode()).hexdigest()[:32]


class Steps:
    """Hands over what a job has so far: `begin(step)`, then `finish(step, value, arrays=None)`.

    One step is open at a time and an id is used once (InternalError otherwise). Both calls count as progress
    for the deadline. `value` is JSON-able; `arrays` maps names to what NumPy can view, JAX arrays included.
    """

    def __init__(self, folder: Path, seal: Seal) -> None:
        names: list[str] = []
        open_step: list[str] = []

        def begin(step: str) -> None:
            if open_step or step in names:
                raise InternalError(
                    "a step is begun once, and after the one before is finished",
                    stage="job",
                    where=step,
                    settled={"open": open_step, "begun": len(names)},
                )
            body = {"schema": STEP_SCHEMA, "kind": "begun", "step": step, "index": len(names)}
            names.append(step)
            open_step.append(step)
            _publish(folder / STEPS_FOLDER / f"{file_stem(step)}.begun", body, seal)

        def finish(step: str, value: Any, arrays: Mapping[str, Any] | None = None) -> None:
            if open_step != [step]:
                raise InternalError("this step is not open", stage="job", where=step, got=f"open: {open_step}")
            place = folder / STEPS_FOLDER / file_stem(step)
            body = {"schema": STEP_SCHEMA, "kind": "finished", "step": step, "index": len(names) - 1}
            body["value"] = value
            body["arrays"] = write_buffers(place.with_suffix(".bin"), arrays) if arrays else []
            _publish(place.with_suffix(".json"), body, seal)
            open_step.clear()

        def conclude(ending: dict[str, Any]) -> None:
            # The worker itself calls this, last.
            body = {"schema": RESULT_SCHEMA, "kind": "result", "steps": len(names) - len(open_step), **ending}
            _publish(folder / RESULT_FILE, body, seal)

        # Closures instead of methods: the object has no attribute that holds the seal.
        self.begin = begin
        self.finish = finish
        self.conclude = conclude


def _publish(path: Path, body: dict[str, Any], seal: Seal) -> None:
    """Seals and writes a record; the record says whether somebody else had put a file in its place."""
    sealed = seal({**body, "displaced": os.path.lexists(path)})
    unfinished = path.with_suffix(".tmp")
    unfinished.write_bytes(sealed)
    os.replace(unfinished, path)


def read_arrays(folder: Path, step: str) -> dict[str, np.ndarray]:
    """The arrays of a finished step, read-only and memory-mapped; their digests were checked when the job ended.

    Raises InternalError when the step was not finished.
    """
    place = Path(folder) / STEPS_FOLDER / file_stem(step)
    try:
        body = body_of(place.with_suffix(".json").read_bytes())
    except FileNotFoundError:
        raise InternalError("the step was not finished", stage="read arrays", where=step) from None
    if not body["arrays"]:
        return {}
    return read_buffers(place.with_suffix(".bin"), body["arrays"])
