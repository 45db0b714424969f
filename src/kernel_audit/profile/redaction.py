"""Takes out of trace files what names a machine, a person or a folder, before anything is hashed.

An `.xplane.pb` is an XSpace message (field numbers of tsl/profiler/protobuf/xplane.proto, confirmed on files of jax 0.9.2 and
0.12.0.1). Its host names are a field of their own and go; so does the plane "Task Environment", which holds how and
where the profiler was started, and the program that is embedded in "/host:metadata" with its source locations. All
other texts stay, except those that hold one of the given words or an absolute path. A part whose bytes hold neither is
copied as it is: parsing costs time.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from typing import Any

from kernel_audit.records.protobuf import append_field, fields

REMOVED = "removed"
_PATH = re.compile(rb"(?<![\w/.:*<)\]}&#%+-])/(?:[\w.@+~-]+/)+[\w.@+~-]+|file://")
_SPACE_PLANE, _SPACE_HOSTNAMES = 1, 4
_PLANE_NAME, _PLANE_EVENT_METADATA = 2, 4
_DROPPED_PLANES = (b"Task Environment",)
_METADATA_PLANE = b"/host:metadata"
# Where messages lie inside messages, from a plane down: path of field numbers -> these fields are messages.
_MESSAGES: dict[tuple[int, ...], frozenset[int]] = {
    (): frozenset((3, 4, 5, 6)),  # lines, event metadata, stat metadata, stats
    (3,): frozenset((4,)),  # events of a line
    (3, 4): frozenset((4,)),  # stats of an event
    (4,): frozenset((2,)),  # entry of a map
    (4, 2): frozenset((5,)),  # stats of event metadata
    (5,): frozenset((2,)),
}


class Redactor:
    """Removes `words` (host name, user name, folders) and absolute paths. Words of fewer than three letters are left out."""

    def __init__(self, words: Iterable[str] = ()) -> None:
        parts = [re.escape(each.encode()) for each in sorted(set(words), key=len, reverse=True) if len(each) >= 3]
        self._words = re.compile(b"|".join(rb"(?<![\w-])" + each + rb"(?![\w-])" for each in parts)) if parts else None

    def private(self, text: bytes) -> bool:
        """Whether a text says where it was made."""
        return bool(_PATH.search(text) or (self._words and self._words.search(text)))

    def text(self, text: str) -> str:
        """A text with each such part replaced."""
        data = _PATH.sub(REMOVED.encode(), text.encode())
        return (self._words.sub(REMOVED.encode(), data) if self._words else data).decode()

    def xplane(self, data: bytes) -> bytes:
        """A clean `.xplane.pb`. Raises ValueError where the bytes are no such message."""
        out = bytearray()
        for field, kind, value in fields(data):
            if field == _SPACE_HOSTNAMES:
                continue
            if field == _SPACE_PLANE and isinstance(value, bytes):
                name = next((each for number, _, each in fields(value) if number == _PLANE_NAME), b"")
                if name in _DROPPED_PLANES:
                    continue
                value = self._plane(value, drop_metadata=name == _METADATA_PLANE)
            append_field(out, field, kind, value)
        return bytes(out)

    def _plane(self, data: bytes, *, drop_metadata: bool) -> bytes:
        out = bytearray()
        for field, kind, value in fields(data):
            if drop_metadata and field == _PLANE_EVENT_METADATA:
                continue
            append_field(out, field, kind, self._value((), field, value))
        return bytes(out)

    def _value(self, path: tuple[int, ...], field: int, value: Any) -> Any:
        """A field of the message at `path` of a plane; texts that are private are replaced."""
        if not isinstance(value, bytes) or not self.private(value):
            return value
        if field not in _MESSAGES.get(path, frozenset()):
            return self.text(value.decode("utf-8", "replace")).encode()
        inner = (*path, field)
        out = bytearray()
        for number, kind, each in fields(value):
            append_field(out, number, kind, self._value(inner, number, each))
        return bytes(out)

    def json_gz(self, data: bytes) -> bytes:
        """A clean `.json.gz`, without a time or a file's name in its header. Raises ValueError where it holds no JSON."""
        text = gzip.decompress(data)
        if self.private(text):
            text = json.dumps(self._json(json.loads(text)), separators=(",", ":")).encode()
        return gzip.compress(text, compresslevel=6, mtime=0)

    def _json(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value) if self.private(value.encode()) else value
        if isinstance(value, list):
            return [self._json(each) for each in value]
        if isinstance(value, dict):
            return {self._json(key): self._json(each) for key, each in value.items()}
        return value


def host_names(data: bytes) -> list[str]:
    """The host names that an `.xplane.pb` states in the field that it has for them."""
    return [
        value.decode() for field, _, value in fields(data) if field == _SPACE_HOSTNAMES and isinstance(value, bytes)
    ]


def plane_names(data: bytes) -> list[str]:
    """The planes of an `.xplane.pb`."""
    planes = [value for field, _, value in fields(data) if field == _SPACE_PLANE]
    return [name.decode() for plane in planes for field, _, name in fields(plane) if field == _PLANE_NAME]
