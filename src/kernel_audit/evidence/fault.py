"""What `verify` finds wrong with a bundle: one file, one sentence."""

from __future__ import annotations

from kernel_audit.records import Record

CHANGED = "changed"  # the bytes are not those that the manifest names
MISSING = "missing"  # named, and not there
EXTRA = "extra"  # there, and not named
CORRUPT = "corrupt"  # cannot be read as what it should be
AMBIGUOUS = "ambiguous"  # two records claim the same place
UNREADABLE = "unreadable"  # the system refuses to read it
NOT_A_FILE = "not-a-file"  # a link, a folder or a device where a file should be
INCONSISTENT = "inconsistent"  # two records contradict each other
PRIVATE = "private"  # text that names a machine, a user or an absolute path


class Fault(Record, kw_only=True):
    """One thing that is wrong: `file` is relative to the bundle ("." the folder itself), `line` counts from 1.

    `kind` is one of the words above.
    """

    file: str
    kind: str
    text: str
    line: int | None = None

    @property
    def place(self) -> str:
        """ "cells.jsonl, line 3", or the file alone."""
        return self.file if self.line is None else f"{self.file}, line {self.line}"
