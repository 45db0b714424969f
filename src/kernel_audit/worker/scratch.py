"""A folder for what is at work, which goes when the process that made it goes, however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

PREFIX = "kernel-audit-work-"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder among the temporary files, removed at the end. Those of processes that were killed are removed first.

    It is held by a lock that the system lets go of with the process: no name or number of a process is believed.
    """
    _sweep(Path(tempfile.gettempdir()))
    folder, held = _made()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _made() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        held = os.open(folder, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        if folder.exists():  # else another process swept it away before it was held
            return folder, held
        os.close(held)


def _sweep(home: Path) -> None:
    for folder in home.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's, or gone by now
            held = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(held)
