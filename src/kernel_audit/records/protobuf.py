"""The wire format of protocol buffers, as far as traces need it: fields in, fields out, no schema.

From the published encoding: a field is a key (number << 3 | wire type), then a varint, eight or four bytes, or a length
and as many bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SHORTEST_TEXT = 3


def texts(data: bytes) -> Iterator[str]:
    """Every text in a message, at any depth: what is printable is a text, what parses is a message, the rest is neither.

    Bytes that are no message give the texts that could be found.
    """
    waiting = [data]
    while waiting:
        try:
            for _, kind, value in fields(waiting.pop()):
                if kind != _BYTES or len(value) < _SHORTEST_TEXT:
                    continue
                text = _printable(value)
                if text is not None:
                    yield text
                else:
                    waiting.append(value)
        except ValueError:
            continue


def _printable(value: bytes) -> str | None:
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return text if text.isprintable() else None


def fields(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """(number, wire type, value) of each field: an int, or bytes (of fixed width or of a length).

    Raises ValueError where the bytes are no message.
    """
    position = 0
    end = len(data)
    while position < end:
        key, position = _read_varint(data, position)
        field, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, position = _read_varint(data, position)
            yield field, kind, value
            continue
        if kind == _BYTES:
            size, position = _read_varint(data, position)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"no protocol buffer: wire type {kind} at byte {position}")
        if field == 0 or position + size > end:
            raise ValueError(f"no protocol buffer: a field of {size} bytes at byte {position} of {end}")
        yield field, kind, data[position : position + size]
        position += size


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data):
            raise ValueError("no protocol buffer: it ends inside a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def append_field(out: bytearray, field: int, kind: int, value: Any) -> None:
    """Appends one field as `fields` gives it."""
    _append_varint(out, field << 3 | kind)
    if kind == _VARINT:
        _append_varint(out, value)
        return
    if kind == _BYTES:
        _append_varint(out, len(value))
    out += value


def _append_varint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
