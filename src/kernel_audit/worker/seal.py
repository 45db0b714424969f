"""Sealed records: JSON that only the holder of a job's key can have written.

A sealed file is the HMAC-SHA256 of the body in hexadecimal, a newline, and the body. The body names its kind,
and a step's body its step, so that one record cannot be passed off as another. Each job has a key of its own.

What this stops: a candidate that writes a result file, leaves a step file, or prints what looks like a
result. What it does not stop: code in the same process that looks for the key's hash state in memory or calls
the harness's own functions. Such code can make its worker say anything, so nothing that a worker which ran a
candidate says about *values* is believed: the captured program is run again, from its bytes, in a worker that
never imported the candidate.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable
from typing import Any

Seal = Callable[[dict[str, Any]], bytes]
Unseal = Callable[[bytes], dict[str, Any]]

_MAC_CHARACTERS = 64


class BrokenSeal(Exception):
    """The bytes were not written by the holder of the key."""


def new_key() -> bytearray:
    """A key for one job, 32 random bytes."""
    return bytearray(secrets.token_bytes(32))


def sealer(key: bytearray) -> Seal:
    """A function that seals a JSON-able body. The key is wiped: only the hash state remains, inside the closure.

    The function raises TypeError or ValueError when the body is not JSON-able. Infinities and NaN cross.
    """
    keyed = hmac.new(key, digestmod="sha256")
    key[:] = bytes(len(key))

    def seal(body: dict[str, Any]) -> bytes:
        data = json.dumps(body).encode()
        mac = keyed.copy()
        mac.update(data)
        return mac.hexdigest().encode() + b"\n" + data

    return seal


def unsealer(key: bytes | bytearray) -> Unseal:
    """A function that checks a sealed record and returns its body; it raises BrokenSeal."""
    keyed = hmac.new(bytes(key), digestmod="sha256")

    def unseal(sealed: bytes) -> dict[str, Any]:
        mac = keyed.copy()
        mac.update(sealed[_MAC_CHARACTERS + 1 :])
        if not hmac.compare_digest(mac.hexdigest().encode(), sealed[:_MAC_CHARACTERS]):
            raise BrokenSeal("its seal is not that of the harness")
        return body_of(sealed)

    return unseal


def body_of(sealed: bytes) -> dict[str, Any]:
    """The body of a record whose seal was checked before."""
    return json.loads(sealed[_MAC_CHARACTERS + 1 :])
