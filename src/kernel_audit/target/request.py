"""What a target runner is asked to do, and the two kernels that it knows."""

from __future__ import annotations

import argparse
import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_audit.contract import Audit
from kernel_audit.contract.places import BUILT_IN

DTYPES = ("float32", "bfloat16")
SOLUTION = "solution"
DEADLINE_S = 3600.0  # a hanging compiler or model ends some time; a slow one is not mistaken for it


@dataclass(frozen=True)
class Lesson:
    """A kernel of the lesson: the model's function, and the built-in audit whose contract it is under."""

    function: str
    audit: str

    def contract(self) -> Audit:
        """The audit, with its baselines and its oracle."""
        return importlib.import_module(BUILT_IN[self.audit]).BUILT_IN[self.audit]


KERNELS = {"fused": Lesson("fused_bias_relu", "bias-relu"), "pipeline": Lesson("pipelined_axpy", "axpy")}


@dataclass(frozen=True)
class Request:
    """One run: a kernel of a model file at one shape (rows, columns), dtype and configuration."""

    kernel: str
    implementation: str
    shape: tuple[int, int]
    block: tuple[int, int]
    dtype: str
    buffers: int
    synchronous: bool
    out: Path
    deadline_s: float

    @property
    def lesson(self) -> Lesson:
        return KERNELS[self.kernel]

    def configuration(self) -> dict[str, Any]:
        """The keywords of the kernel that are its configuration."""
        if self.kernel == "fused":
            return {"block": self.block}
        return {"block": self.block, "buffers": self.buffers, "no_pipelining": self.synchronous}

    def name(self) -> str:
        """A file name for what becomes of it."""
        shape, block = ("x".join(map(str, each)) for each in (self.shape, self.block))
        parts = [self.kernel, shape, f"block-{block}", self.dtype]
        if self.kernel == "pipeline":
            parts += [f"{self.buffers}-buffers", *(["synchronous"] if self.synchronous else [])]
        return "-".join(parts)


def parse(arguments: Sequence[str], target: str) -> Request:
    """The command line as a request; a mistake in it ends the process with exit code 2 and a line on stderr."""
    parser = argparse.ArgumentParser(
        prog=f"target_{target}.py",
        description=f"Runs one kernel of a model file on a real {target.upper()}: correctness, then times. Prints JSON on "
        "success only. Exit codes: 0, 1 for a failure on the target (recorded in the output folder), 2 without a target.",
    )
    parser.add_argument("--kernel", required=True, choices=list(KERNELS))
    parser.add_argument(
        *("--implementation", "--impl"),
        required=True,
        metavar="PATH",
        help=f"a model file, or {SOLUTION!r} for the one that comes with the project",
    )
    pairs: dict[str, Any] = {"required": True, "nargs": 2, "type": _count, "metavar": ("M", "N")}
    parser.add_argument("--shape", help="rows and columns of the matrix", **pairs)
    parser.add_argument("--block", help="rows and columns of a block", **pairs)
    parser.add_argument("--dtype", default=DTYPES[0], choices=DTYPES)
    parser.add_argument("--buffers", default=2, type=_count, help="slots of each input of the pipeline")
    parser.add_argument("--synchronous", action="store_true", help="the pipeline's copies one after another")
    parser.add_argument("--out", default=Path("evidence") / f"target-{target}", type=Path, help="folder of the records")
    parser.add_argument(
        "--deadline",
        dest="deadline_s",
        default=DEADLINE_S,
        type=_seconds,
        metavar="SECONDS",
        help=f"longest time for the whole run, compilation included (default {DEADLINE_S:g}); then it is a failure",
    )
    asked = vars(parser.parse_args(arguments))
    return Request(**{**asked, "shape": tuple(asked["shape"]), "block": tuple(asked["block"])})


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"a number of seconds above 0, not {text!r}")
    return number


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number of 1 or more, not {text!r}")
    return int(text)
