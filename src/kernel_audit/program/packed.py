"""A program as bytes: what `jax.export` serialised, a JSON sidecar beside it, and a digest over both."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

import jax
from jax import export as jax_export

from kernel_audit.errors import BundleError, CaptureError, EnvironmentFault
from kernel_audit.program import compat, placement
from kernel_audit.program.executable import Executable
from kernel_audit.program.raised import without_folders
from kernel_audit.records import Kernel, Record, decode, encode

_MAGIC = b"KAPROG1\n"
_HEADER = struct.Struct("<8s32sQ")  # magic, sha256 of all that follows the header, length of the sidecar


class Sidecar(Record, kw_only=True):
    """What the exported bytes do not say themselves.

    `mode` is "generic" or "target", `platform` "cpu", "tpu" or "cuda". `mesh` holds (axis name, size), `specs` one
    partition spec for each operand (None where it has no sharding). `donated` and `specs` count flat operands;
    `out_tree` is the text of the result tree.
    """

    schema: str = "kernel-audit/exported/1"
    digest: str
    mode: str
    platform: str
    jax_version: str
    device_kind: str
    donated: list[int]
    kernels: list[Kernel]
    operands: list[str]
    results: list[str]
    mesh: list[tuple[str, int]]
    specs: list[list[str | list[str] | None] | None]
    out_tree: str


def pack(sidecar: Sidecar, exported: bytes) -> bytes:
    """Header, sidecar and exported program in one sequence of bytes."""
    text = encode(sidecar)
    body = text + exported
    return _HEADER.pack(_MAGIC, hashlib.sha256(body).digest(), len(text)) + body


def unpack(data: bytes) -> tuple[Sidecar, bytes]:
    """The sidecar and the exported program. Raises CaptureError when a byte is missing, added or changed."""
    if len(data) < _HEADER.size:
        raise _corrupt(f"at least {_HEADER.size} bytes", f"{len(data)} bytes")
    magic, digest, length = _HEADER.unpack_from(data)
    body = data[_HEADER.size :]
    if magic != _MAGIC:
        raise _corrupt(f"bytes that begin with {_MAGIC!r}", repr(magic))
    found = hashlib.sha256(body).digest()
    if found != digest or length > len(body):
        raise _corrupt(f"sha256 {digest.hex()}", f"sha256 {found.hex()}")
    try:
        return decode(body[:length], Sidecar, where="the sidecar of an exported program"), body[length:]
    except BundleError as error:
        raise _corrupt("a sidecar of this version", error.got or error.what) from None


def _corrupt(expected: str, got: str) -> CaptureError:
    return CaptureError(
        "these bytes are not an exported program",
        stage="load",
        where="the bytes",
        expected=expected,
        got=got,
        next_command="export the program again",
    )


class LoadedProgram:
    """A program read from bytes; nothing of the candidate is imported."""

    def __init__(self, sidecar: Sidecar, exported: jax_export.Exported) -> None:
        self.sidecar = sidecar
        self.exported = exported

    def executable(self) -> Executable:
        """A kept jitted callable on this process's backend, donating where the candidate donates.

        A sharded program is laid over the first devices at hand. Raises EnvironmentFault when the bytes are for another
        platform or need more devices than there are.
        """
        self.require_platform()
        shardings = None
        if self.sidecar.mesh:
            shardings = placement.lay_over(self.sidecar.mesh, self.sidecar.specs)
        elif self.exported.nr_devices > 1:
            raise CaptureError(
                "a program for several devices was captured without sharded operands",
                stage="load",
                where=f"a program of {self.exported.nr_devices} devices",
                expected="operands with a NamedSharding at capture",
            )
        return Executable(self.exported.call, self.exported.in_avals, donated=self.sidecar.donated, shardings=shardings)

    def require_platform(self) -> None:
        """Raises EnvironmentFault where this process's backend is not the platform that the bytes are for."""
        backend = {"gpu": "cuda"}.get(jax.default_backend(), jax.default_backend())
        if backend == self.sidecar.platform:
            return
        raise EnvironmentFault(
            "these bytes are for another platform",
            stage="load",
            where=f"a program in mode {self.sidecar.mode}",
            expected=f"a backend of platform {self.sidecar.platform}",
            got=backend,
        )


def load(data: bytes) -> LoadedProgram:
    """The program in `data`, as `Program.export` made it.

    Raises CaptureError for corrupt bytes and for bytes of a JAX version that this one cannot read (JAX promises to read
    older bytes, never newer ones).
    """
    compat.require_supported_jax()
    sidecar, exported = unpack(data)
    try:
        return LoadedProgram(sidecar, jax_export.deserialize(bytearray(exported)))
    except Exception as error:
        raise CaptureError(
            "this JAX cannot read the exported program",
            stage="load",
            where=f"a program in mode {sidecar.mode} for {sidecar.platform}",
            expected=f"jax {sidecar.jax_version}, which wrote it",
            got=f"jax {jax.__version__}: {_first_line(error)}",
        ) from error


def _first_line(error: Any) -> str:
    lines = without_folders(str(error)).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
