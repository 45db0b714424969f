"""Reading a file of a folder that may be hostile: regular files only, no links followed, nothing that blocks."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from kernel_audit.errors import BundleError

LARGEST_BYTES = 1 << 30  # a record file above this was not written here


class NotRegular(Exception):
    """Something else than a regular file lies there; the text says what."""


def open_regular(path: Path) -> BinaryIO:
    """Opens a regular file. Raises NotRegular, or OSError as the system does."""
    kind = os.lstat(path).st_mode
    if not stat.S_ISREG(kind):
        raise NotRegular(kind_of(kind))
    # Without blocking: between the look and the opening a pipe may have taken the file's place.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular("no regular file any more")
    return os.fdopen(descriptor, "rb")


def kind_of(mode: int) -> str:
    """The kind of a file in words: "a symbolic link"."""
    for test, word in ((stat.S_ISLNK, "a symbolic link"), (stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe")):
        if test(mode):
            return word
    return "a regular file" if stat.S_ISREG(mode) else "a device or a socket"


def read_regular(folder: Path, name: str) -> bytes:
    """The bytes of file `name` of a bundle. Raises BundleError: missing, not a file, unreadable or too large."""
    try:
        with open_regular(folder / name) as stream:
            data = stream.read(LARGEST_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise BundleError(
            "missing evidence: there is no such file",
            stage="read",
            where=f"{name}, in {folder.name}",
            expected="a bundle with every file that its audit finished",
            got=f"no {name}" if folder.is_dir() else "no folder",
            next_command="kernel-audit run AUDIT --out DIR",
        ) from None
    except NotRegular as error:
        raise BundleError(
            "corrupt evidence: not a regular file",
            stage="read",
            where=f"{name}, in {folder.name}",
            expected="a regular file",
            got=str(error),
        ) from None
    except OSError as error:
        raise BundleError(
            "unreadable evidence", stage="read", where=f"{name}, in {folder.name}", got=error.strerror or str(error)
        ) from None
    if len(data) > LARGEST_BYTES:
        raise BundleError(
            "corrupt evidence: too large",
            stage="read",
            where=f"{name}, in {folder.name}",
            expected=f"at most {LARGEST_BYTES} bytes",
            got="more",
        )
    return data
