"""Messages over a socket between parent and zygote: a length, then JSON or raw bytes."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("<Q")


def send_bytes(sock: socket.socket, data: bytes | bytearray) -> None:
    """One message. Raises OSError when nobody reads any more."""
    sock.sendall(_LENGTH.pack(len(data)))
    sock.sendall(data)


def receive_bytes(sock: socket.socket) -> bytearray:
    """The next message. Raises EOFError when the other side is gone."""
    (length,) = _LENGTH.unpack(_exactly(sock, _LENGTH.size))
    return _exactly(sock, length)


def send(sock: socket.socket, message: dict[str, Any]) -> None:
    """A JSON message."""
    send_bytes(sock, json.dumps(message).encode())


def receive(sock: socket.socket) -> dict[str, Any]:
    """The next JSON message. Raises EOFError when the other side is gone."""
    return json.loads(receive_bytes(sock))


def _exactly(sock: socket.socket, length: int) -> bytearray:
    data = bytearray(length)
    view = memoryview(data)
    filled = 0
    while filled < length:
        try:
            count = sock.recv_into(view[filled:])
        except ConnectionResetError:
            count = 0
        if count == 0:
            raise EOFError("the other side of the socket is gone")
        filled += count
    return data
