"""Every exception of kernel-audit, in five parts.

    AuditError                 exit 2   a request that cannot be honoured
    ├── AuditFileError                  the audit file states something wrong, raises or hangs
    ├── CaptureError                    a program cannot be captured, exported or loaded
    ├── EnvironmentFault                the machine or its JAX cannot do what is asked
    ├── BundleError                     a bundle or one of its records cannot be read
    └── TargetError                     the target that is asked for is not there
    InternalError              exit 70  our own fault

A message has five parts (docs/architecture.md, "Errors"): what failed and at which stage; which object; what was expected
and what came, aligned; what was settled by then; the next command.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any


class AuditError(Exception):
    """A request that cannot be honoured. Every part is plain text and is printed as it stands."""

    exit_code = 2

    def __init__(
        self,
        what: str,
        *,
        stage: str,
        where: str,
        expected: str | None = None,
        got: str | None = None,
        settled: Mapping[str, Any] | None = None,
        next_command: str | None = None,
    ) -> None:
        self.what = what
        self.stage = stage
        self.where = where
        self.expected = expected
        self.got = got
        self.settled = dict(settled or {})
        self.next_command = next_command
        super().__init__(self.text())

    def text(self) -> str:
        """The five parts as lines; a part that does not apply is left out."""
        lines = [f"{self.stage}: {self.what}", f"  in        {_inside(self.where)}"]
        if self.expected is not None:
            lines.append(f"  expected  {_inside(self.expected)}")
        if self.got is not None:
            lines.append(f"  got       {_inside(self.got)}")
        if self.settled:
            lines.append("  settled   " + ", ".join(f"{key} = {value}" for key, value in self.settled.items()))
        if self.next_command is not None:
            lines.append(f"  next      {self.next_command}")
        return "\n".join(lines)

    def parts(self) -> dict[str, Any]:
        """The parts as plain data: how an error crosses from a worker to the parent."""
        return {
            "error": type(self).__name__,
            "what": self.what,
            "stage": self.stage,
            "where": self.where,
            "expected": self.expected,
            "got": self.got,
            "settled": {key: str(value) for key, value in self.settled.items()},
            "next_command": self.next_command,
        }


class AuditFileError(AuditError):
    """The audit file states something wrong, raises or hangs."""


class CaptureError(AuditError):
    """A program cannot be captured, exported or loaded."""


class EnvironmentFault(AuditError):
    """The machine or its JAX cannot do what is asked."""


class BundleError(AuditError):
    """A bundle or one of its records cannot be read."""


class TargetError(AuditError):
    """The target that is asked for is not there."""


class InternalError(AuditError):
    """Our own fault; please report it."""

    exit_code = 70


_BY_NAME = {
    kind.__name__: kind
    for kind in (
        AuditError,
        AuditFileError,
        CaptureError,
        EnvironmentFault,
        BundleError,
        TargetError,
        InternalError,
    )
}


def from_parts(parts: Mapping[str, Any]) -> AuditError:
    """The error whose `parts()` crossed a process border; an unknown kind becomes an AuditError."""
    rest = {key: value for key, value in parts.items() if key not in ("error", "what")}
    return _BY_NAME.get(str(parts.get("error")), AuditError)(str(parts["what"]), **rest)


def _inside(text: str) -> str:
    """Text of others as part of ours: its own lines are marked, so that none can pass for one of the five parts."""
    return text.rstrip().replace("\r", " ").replace("\n", "\n            | ")


def near(name: str, known: Iterable[str]) -> str:
    """`name` quoted, with the nearest known names: "'blok' (did you mean 'block'?)"."""
    close = difflib.get_close_matches(name, list(known), n=2, cutoff=0.6)
    hint = " or ".join(repr(each) for each in close)
    return f"{name!r} (did you mean {hint}?)" if hint else repr(name)
