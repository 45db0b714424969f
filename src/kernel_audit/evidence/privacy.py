"""No bundle may say where it was made: no absolute path, home folder, host or user name in any of its text files."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from kernel_audit.evidence.fault import PRIVATE, UNREADABLE, Fault
from kernel_audit.evidence.layout import shown_name
from kernel_audit.evidence.regular import NotRegular, open_regular
from kernel_audit.records.protobuf import texts

TEXT_FILES = (".json", ".jsonl", ".html", ".svg", ".py", ".txt", ".toml", ".sha256", ".md", ".xml", ".csv")
PACKED_FILES = (".gz", ".pb")  # traces: unpacked, or searched for texts among the bytes
_LARGEST_UNPACKED = 1 << 28

# What must not stand before the first slash of a path: a word, a digit or another slash there makes it a fraction, a
# part of a cell's id or of an address on the web.
_BEFORE = r"(?<![\w/.:*<)\]}&#%+-])"
_ABSOLUTE = re.compile(_BEFORE + r"/(?:[\w.@+~-]+/)+[\w.@+~-]*")
_FILE_URL = re.compile(r"file://+[^\s\"'<>]+")
_WINDOWS = re.compile(r"\b[A-Za-z]:(?:\\\\?|/)(?:Users|home|Windows|Program)\b[^\s\"'<>]*")
_HOME = re.compile(_BEFORE + r"~[a-z_][\w-]*/")
_PATTERNS = (
    ("an absolute path", _ABSOLUTE),
    ("a file address", _FILE_URL),
    ("a path of Windows", _WINDOWS),
    ("a home folder", _HOME),
)
# Places that every Linux system has and that tell nothing of this one.
_PUBLIC = ("/dev/null", "/dev/shm", "/proc/self", "/usr/bin/env")
_SHORTEST_NAME = 5
_COMMON_NAMES = frozenset(("localhost", "ubuntu", "debian", "runner", "docker", "nobody", "admin", "python"))


def private_text(folder: Path, names: Iterable[str] = ()) -> list[Fault]:
    """Every place in a text file of `folder` that names a machine or a person.

    `names` are further words that must not occur, such as the host's and the user's name (see `machine_names`).
    One fault a line and kind; a file that cannot be read is a fault, too.
    """
    words = [re.escape(name) for name in names if name]
    patterns = list(_PATTERNS)
    if words:
        patterns.append(("a name of this machine", re.compile(rf"(?<![\w-])(?:{'|'.join(words)})(?![\w-])")))
    faults: list[Fault] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix in (*TEXT_FILES, *PACKED_FILES) and not path.is_dir():
            faults += _in_file(path, shown_name(path.relative_to(folder).as_posix()), patterns)
    return faults


def machine_names() -> list[str]:
    """Host name, user name and home folder of this machine, where they are telling: no common and no short ones."""
    found = [os.uname().nodename, os.environ.get("USER", ""), os.environ.get("HOME", "").strip("/")]
    return sorted({each for each in found if len(each) >= _SHORTEST_NAME and each not in _COMMON_NAMES})


def _in_file(path: Path, name: str, patterns: list[tuple[str, re.Pattern[str]]]) -> Iterator[Fault]:
    try:
        with open_regular(path) as stream:
            text = _text(path, stream.read())
    except (NotRegular, OSError) as error:
        yield Fault(file=name, kind=UNREADABLE, text=str(error))
        return
    except (EOFError, zlib.error) as error:
        yield Fault(file=name, kind=UNREADABLE, text=f"cannot be unpacked: {error}")
        return
    for number, line in enumerate(text.split("\n"), start=1):
        for what, pattern in patterns:
            hits = (hit.group() for hit in pattern.finditer(line))
            found = next((hit for hit in hits if not hit.startswith(_PUBLIC)), None)
            if found is not None:
                yield Fault(file=name, kind=PRIVATE, text=f"{what}: {found[:80]!r}", line=number)


def _text(path: Path, data: bytes) -> str:
    """What a file says: unpacked; of a protocol buffer its texts, one a line."""
    if path.suffix == ".gz":
        unpacker = zlib.decompressobj(wbits=31)
        data = unpacker.decompress(data, _LARGEST_UNPACKED)
        if unpacker.unconsumed_tail:
            raise EOFError(f"larger than {_LARGEST_UNPACKED} bytes")
    elif path.suffix == ".pb":
        return "\n".join(texts(data))
    return data.decode("utf-8", "replace")
