"""Captured output: the first and the last part of a stream, and whether it imitates a record."""

from __future__ import annotations

import re

KEPT_BYTES = 64 << 10  # at each end
_OVERLAP = 256  # bytes of the last piece that are searched again, for a mark cut in two

# What no honest program prints: the marks of our own records. Nothing reads results from output, so what
# this finds is the intent.
_IMITATIONS = re.compile(
    rb"""
      ["']schema["'] \s* : \s* ["']kernel-audit/
    | ["']outcome["'] \s* : \s* ["'](agrees|accepted|finished)["']
    | ["']decision["'] \s* : \s* ["'](keep|revise|use-the-baseline|await-target-evidence)["']
    """,
    re.VERBOSE,
)


class Capture:
    """Keeps the two ends of a stream, KEPT_BYTES each, and the first imitation of a record anywhere in it."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._recent = b""
        self.total_bytes = 0
        self.imitation: str | None = None

    def add(self, data: bytes) -> None:
        """The next piece of the stream."""
        self.total_bytes += len(data)
        if self.imitation is None:
            self._search(data)
        room = KEPT_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 4 * KEPT_BYTES:
            del self._tail[:-KEPT_BYTES]

    def text(self) -> str:
        """What was kept, with a line that says how much was left out."""
        tail = self._tail[-KEPT_BYTES:]
        left_out = self.total_bytes - len(self._head) - len(tail)
        if left_out == 0:
            return (self._head + tail).decode(errors="replace")
        note = f"\n[... {left_out} bytes left out ...]\n"
        return self._head.decode(errors="replace") + note + tail.decode(errors="replace")

    def _search(self, data: bytes) -> None:
        searched = self._recent + data
        found = _IMITATIONS.search(searched)
        if found:
            start = max(0, found.start() - 80)
            self.imitation = searched[start : found.end() + 80].decode(errors="replace").strip()
        self._recent = searched[-_OVERLAP:]
