"""What a candidate raised while it was traced, as plain data without a folder of this machine."""

from __future__ import annotations

import re
import sysconfig
import traceback
from pathlib import Path

import jax

from kernel_audit.errors import CaptureError

_FOLDERS = re.compile(r"(?<![\w.])/(?:[^\s/:'\"<>|]+/)+")
_RAISED_LINE = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception)): (.*)$", re.MULTILINE)
# By module, since functions that a library generates (a dataclass's `__init__`) have no file of it.
_LIBRARIES = ("jax", "jaxlib", "numpy")
_PACKAGE, _CANDIDATES_IN_IT = "kernel_audit", "kernel_audit.kernels"
_STANDARD_LIBRARY = sysconfig.get_path("stdlib") + "/"
_INSTALLED = ("/site-packages/", "/dist-packages/")


class CandidateRaised(CaptureError):
    """The candidate raised while it was traced: a refusal, a mistake, a leaked tracer.

    `type_name` is the exception's class name, `mro` the class names of it and its bases from the nearest on (`object`
    left out), `message` its text without folders, `location` "file.py:line" of the deepest frame in the candidate's own
    files, or "" when there is none.
    """

    def __init__(self, error: BaseException, *, where: str) -> None:
        self.type_name = type(error).__name__
        self.mro = tuple(kind.__name__ for kind in type(error).__mro__ if kind is not object)
        self.message = without_folders(str(error))
        self.location = deepest_own_frame(error)
        super().__init__(
            "the candidate raised while it was traced",
            stage="capture",
            where=f"{where}, at {self.location}" if self.location else where,
            expected="a traced program",
            got=f"{self.type_name}: {self.message}",
        )


class InterpreterRaised(CaptureError):
    """The TPU interpreter refused what a kernel did: an index out of bounds, an output block revisited.

    `type_name` and `message` are those of the exception inside the interpreter, without folders.
    """

    def __init__(self, error: BaseException) -> None:
        lines = _RAISED_LINE.findall(str(error))
        self.type_name, self.message = lines[-1] if lines else (type(error).__name__, str(error))
        self.message = without_folders(self.message)
        super().__init__(
            "the TPU interpreter raised",
            stage="run",
            where="a program in the TPU interpreter",
            got=f"{self.type_name}: {self.message}",
        )


def is_interpreters(error: BaseException) -> bool:
    """Whether `error` came out of a host callback, which is how the TPU interpreter runs."""
    return isinstance(error, jax.errors.JaxRuntimeError) and "CpuCallback error" in str(error)


def without_folders(text: str) -> str:
    """`text` with `/folder/file.py` shortened to `file.py`."""
    return _FOLDERS.sub("", text)


def deepest_own_frame(error: BaseException) -> str:
    """Where the candidate was: the deepest frame that is not JAX's, NumPy's, the standard library's or this package's; of a
    file that Python cannot parse, where the parser stopped.

    "file.py:line", or "" when there is no such place.
    """
    if isinstance(error, SyntaxError) and error.lineno and not (error.filename or "<").startswith("<"):
        return f"{Path(str(error.filename)).name}:{error.lineno}"
    location = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        name = frame.f_code.co_filename
        if is_the_candidates(name, str(frame.f_globals.get("__name__", ""))):
            location = f"{Path(name).name}:{line}"
    return location


def is_the_candidates(file: str, module: str) -> bool:
    """Whether code of this file and module is nobody's library: not JAX, NumPy, the standard library or this package's."""
    if file.startswith("<frozen") or any(_is_in(module, each) for each in _LIBRARIES):
        return False
    if _is_in(module, _PACKAGE) and not _is_in(module, _CANDIDATES_IN_IT):
        return False
    return not file.startswith(_STANDARD_LIBRARY) or any(part in file for part in _INSTALLED)


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")
