"""Puts a specimen through the tool: the built-in audit's contract, on a plan small enough to try hundreds.

What the small plan leaves out are shapes, not checks: each dtype, engine, value family and configuration is met.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec
from corpus import BIAS, BLOCKED, REGRESSION, Specimen

from kernel_audit.conduct import Answer, Question, Request, evidence_of
from kernel_audit.contract import Audit, FunctionRef
from kernel_audit.decision import decide
from kernel_audit.kernels.audits import BUILT_IN
from kernel_audit.matrix.check import check_matrix
from kernel_audit.matrix.laboratory import PRELOAD, Laboratory, Limits
from kernel_audit.worker import GIB, Pool

SPECIMENS = Path(__file__).parent / "specimens"
LATE_SEED = 7_412_903


def _sizes(*shapes: tuple[int, int]) -> list[dict[str, int]]:
    return [{"m": m, "n": n} for m, n in shapes]


def small(contract: str) -> Audit:
    """The contract with few shapes: tails, single rows and columns, square grids and both kinds of rectangles."""
    audit = BUILT_IN[contract]
    if contract == REGRESSION:
        return _small_regression(audit)
    if contract == BLOCKED:
        declared_sizes, shapes = (6, 8), _sizes((5, 9), (4, 8), (2, 12), (70, 3))
        tuning = {"block": [[2, 4]]}
    else:
        declared_sizes = (9, 129)
        shapes = _sizes((8, 384)) if contract == BIAS else _sizes((16, 256), (8, 384), (24, 128))
        tuning = audit.tuning
    sizes = dict(zip(("m", "n"), declared_sizes, strict=True))
    return msgspec.structs.replace(
        audit,
        dimensions=[msgspec.structs.replace(each, size=sizes[each.name]) for each in audit.dimensions],
        shapes=shapes,
        tuning=tuning,
        sequences=[],
    )


def _small_regression(audit: Audit) -> Audit:
    """Blocks of the kernel are of 1,024 rows at so few columns: one and a tail, and two whole ones."""
    sizes = {"n": 1100, "d": 5}
    return msgspec.structs.replace(
        audit,
        dimensions=[msgspec.structs.replace(each, size=sizes[each.name]) for each in audit.dimensions],
        shapes=[{"n": 2048, "d": 3}, {"n": 200, "d": 130}],
    )


class Trials:
    """Tries specimens one after another; what knows nothing of a candidate is made once for all of them."""

    def __init__(self, home: Path, *, deadline_s: float = 6.0, whole: bool = False) -> None:
        self.home = home
        self.whole = whole
        self.limits = Limits(deadline_s, 4 * GIB)
        self.pool = Pool(size=1, preload=PRELOAD)

    def close(self) -> None:
        self.pool.close()

    def audit_of(self, specimen: Specimen) -> Audit:
        audit = BUILT_IN[specimen.contract] if self.whole else small(specimen.contract)
        return msgspec.structs.replace(audit, candidate=FunctionRef(file=specimen.file, name=specimen.function))

    def try_(self, specimen: Specimen) -> Answer:
        """The specimen's evidence and decision."""
        return self.answer(self.audit_of(specimen), SPECIMENS)

    def answer(self, audit: Audit, folder: Path) -> Answer:
        """An audit's evidence and decision; file references are relative to `folder`."""
        with tempfile.TemporaryDirectory(dir=self.home) as work:
            laboratory = Laboratory(
                self.pool, Path(work), [folder], self.limits, size=1, references=self.home / "references"
            )
            try:
                matrix = check_matrix(audit, laboratory, LATE_SEED, lambda *_: None, quick=not self.whole)
                request = Request(
                    audit=audit,
                    cells=None,
                    quick=True,
                    late_seed=LATE_SEED,
                    late_seed_commitment="",
                    sources={},
                    tool_version="",
                )
                evidence, _ = evidence_of(Question(audit=audit.name), request, matrix, {})
            finally:
                laboratory.close()
        return Answer(evidence, decide(evidence))
