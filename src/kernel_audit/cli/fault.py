"""Our own fault, told in the five parts; the traceback goes to a file, not to the user."""

from __future__ import annotations

import tempfile
import traceback
from pathlib import Path

from kernel_audit.errors import InternalError


def own_fault(error: Exception) -> str:
    """The text of an InternalError for an exception that nobody expected."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else "unknown"
    with tempfile.NamedTemporaryFile("w", prefix="kernel-audit-fault-", suffix=".txt", delete=False) as stream:
        stream.write("".join(traceback.format_exception(error)))
    return InternalError(
        "an unexpected error in kernel-audit itself",
        stage="internal",
        where=place,
        expected="no such error",
        got=f"{type(error).__name__}: {error}",
        next_command=f"please report it with {stream.name}",
    ).text()
