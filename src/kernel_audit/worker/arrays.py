"""Arrays between processes: raw bytes in one file, and a list that says dtype, shape and place of each.

Bytes, dtype name and shape carry every dtype that JAX knows (bfloat16, the float8 and 4-bit types of
ml_dtypes among them) bit for bit, which no NumPy file format does. NumPy is imported where it is used: the
parent may never need it.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_audit.errors import InternalError

if TYPE_CHECKING:
    import numpy as np

_ALIGNMENT = 64  # bytes; what XLA wants of a buffer that it may use in place


def write_buffers(path: Path, arrays: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Writes the arrays one after another to `path` and returns their places.

    Each place has "name", "dtype", "shape", "offset" (bytes) and "sha256". Raises InternalError for an array
    whose dtype cannot be named (objects, strings, structures).
    """
    places = []
    with path.open("wb") as stream:
        for name, value in arrays.items():
            array = _plain(name, value)
            stream.write(bytes(-stream.tell() % _ALIGNMENT))
            data = array.reshape(-1).view("uint8").data
            places.append(
                {
                    "name": name,
                    "dtype": array.dtype.name,
                    "shape": list(array.shape),
                    "offset": stream.tell(),
                    "sha256": hashlib.sha256(data).hexdigest(),
                }
            )
            stream.write(data)
    return places


def read_buffers(path: Path, places: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """The arrays of `write_buffers`, read-only and memory-mapped.

    Raises InternalError when the file does not hold what `places` says.
    """
    import ml_dtypes  # noqa: F401  (makes the dtype names known to NumPy)
    import numpy as np

    data = _mapped(path)
    arrays = {}
    for place in places:
        dtype, shape = np.dtype(place["dtype"]), tuple(place["shape"])
        count = int(np.prod(shape, dtype=np.int64))
        if place["offset"] + count * dtype.itemsize > len(data):
            raise InternalError(
                "an array's bytes are missing",
                stage="read arrays",
                where=f"{path.name}: {place['name']}",
                expected=f"{count * dtype.itemsize} bytes from {place['offset']}",
                got=f"{len(data)} bytes in the file",
            )
        if count == 0:
            arrays[place["name"]] = np.empty(shape, dtype)
        else:
            flat = np.frombuffer(data, dtype, count, place["offset"])
            arrays[place["name"]] = flat.reshape(shape)
    return arrays


def altered(path: Path, places: list[dict[str, Any]]) -> str | None:
    """The name of the first array whose bytes are not those that were sealed, or None."""
    try:
        arrays = read_buffers(path, places)
    except (InternalError, OSError, ValueError, TypeError):
        return places[0]["name"] if places else None
    for place in places:
        data = arrays[place["name"]].reshape(-1).view("uint8").data
        if hashlib.sha256(data).hexdigest() != place["sha256"]:
            return place["name"]
    return None


def _plain(name: str, value: Any) -> np.ndarray:
    """`value` as a contiguous array in native byte order whose dtype can be found again by its name."""
    import numpy as np

    array = np.asarray(value)
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("=")).reshape(array.shape)
    try:
        nameable = not array.dtype.hasobject and np.dtype(array.dtype.name) == array.dtype
    except TypeError:
        nameable = False
    if not nameable:
        raise InternalError(
            "an array of this dtype cannot cross between processes",
            stage="write arrays",
            where=name,
            expected="a numeric or boolean dtype",
            got=str(array.dtype),
        )
    return array


def _mapped(path: Path) -> mmap.mmap | bytes:
    """The file's bytes. Not followed through a link and not read from a pipe: what wrote it may mean harm."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise InternalError("not a plain file", stage="read arrays", where=path.name)
        if status.st_size == 0:
            return b""
        return mmap.mmap(descriptor, 0, prot=mmap.PROT_READ)
    finally:
        os.close(descriptor)
