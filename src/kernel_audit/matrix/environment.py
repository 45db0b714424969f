"""Where the observations were made, without a name of the machine, of a user or of a folder."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath

from kernel_audit import __version__
from kernel_audit.contract import Audit
from kernel_audit.matrix.check import Matrix, engines_of
from kernel_audit.matrix.plan import GENERIC, TPU_INTERPRETER
from kernel_audit.records import Environment

PACKAGES = ("jax", "jaxlib", "libtpu", "ml_dtypes", "msgspec", "numpy")
FLAGS = ("JAX_ENABLE_X64", "JAX_PLATFORMS", "LIBTPU_INIT_ARGS", "XLA_FLAGS")


def environment_of(audit: Audit, matrix: Matrix, command: tuple[str, ...]) -> Environment:
    """The environment record of a finished matrix."""
    return Environment(
        tool_version=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        versions=installed(),
        devices=sorted({each.actual_backend for each in matrix.records.cells if each.actual_backend}),
        flags={name: os.environ[name] for name in FLAGS if name in os.environ},
        command=[PurePath(each).name if "/" in each else each for each in command],
        isolation=matrix.isolation,
        oracle=_oracle(audit),
        not_run=_not_run(audit, matrix),
    )


def installed() -> dict[str, str]:
    """Versions of the packages that matter here; a package that is missing is left out."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _oracle(audit: Audit) -> str:
    if audit.oracle.kind == "lifted":
        return "the first baseline lifted to float64; shares the baseline's mathematics"
    function, candidate = audit.oracle.function, audit.candidate
    assert function is not None
    shared = (function.file or function.module) == (candidate.file or candidate.module)
    text = "host NumPy written by hand, in a worker of its own"
    return text + ", from the candidate's module" if shared else text


def _not_run(audit: Audit, matrix: Matrix) -> list[str]:
    """What could not be, or was not, done here: in sentences."""
    said = []
    cells = matrix.records.cells
    for engine in (GENERIC, TPU_INTERPRETER):
        missing = [each for each in cells if each.engine == engine and each.outcome == "not-captured"]
        if missing:
            said.append(
                f"{len(missing)} cells in the {engine.removesuffix('-interpreter')} interpreter: {missing[0].note}"
            )
    if TPU_INTERPRETER not in engines_of(audit):
        said.append("the TPU interpreter: the kernel is for a GPU")
    if matrix.plan.left_out:
        first = matrix.plan.left_out[0]
        many = "combination" if len(matrix.plan.left_out) == 1 else "combinations"
        said.append(f"{len(matrix.plan.left_out)} {many} left out of the plan, first {first.what}: {first.why}")
    unread = [
        told.value["not_inspected"] for told in matrix.records.seen.programs.values() if "not_inspected" in told.value
    ]
    if unread:
        said.append(f"the kernels of {len(unread)} programs could not be read, first {unread[0]}")
    said.append("any run on a target")
    return said
