"""Puts a step through the tool: as the candidate's own, or as the workload of an audit. Four partitions, float32."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec
from sample_evidence import agreeing
from trial import SPECIMENS

from kernel_audit.conduct.workload import WORKLOAD_PRELOAD, examine_workload
from kernel_audit.contract import Audit, FunctionRef
from kernel_audit.decision import decide
from kernel_audit.kernels.audits import BUILT_IN
from kernel_audit.matrix.laboratory import PRELOAD, Laboratory, Limits
from kernel_audit.records import Decision, WorkloadRecord
from kernel_audit.worker import Pool

FILE = "steps.py"


class StepTrials:
    """Tries steps one after another; what knows nothing of a candidate is made once for all of them."""

    def __init__(self, home: Path, *, quick: bool = True) -> None:
        self.home = home
        self.quick = quick
        self.pool = Pool(size=2, preload=(*PRELOAD, *WORKLOAD_PRELOAD))

    def close(self) -> None:
        self.pool.close()

    def audit(self, **workload: FunctionRef) -> Audit:
        """The regression in float32 with ordinary JAX as the candidate: the step is what is tried."""
        audit = BUILT_IN["regression"]
        assert audit.workload is not None
        return msgspec.structs.replace(
            audit,
            candidate=FunctionRef(module="kernel_audit.kernels.regression_references", name="hand_gradient"),
            tuning={},
            dtypes={"T": ["float32"]},
            workload=msgspec.structs.replace(audit.workload, **workload),
        )

    def as_candidates(self, name: str) -> tuple[WorkloadRecord, Decision]:
        return self._tried(self.audit(candidate_step=FunctionRef(file=FILE, name=name)))

    def as_workload(self, name: str) -> tuple[WorkloadRecord, Decision]:
        audit = self.audit(step=FunctionRef(file=FILE, name=name))
        return self._tried(msgspec.structs.replace(audit, worth=msgspec.structs.replace(audit.worth, step=None)))

    def _tried(self, audit: Audit) -> tuple[WorkloadRecord, Decision]:
        with tempfile.TemporaryDirectory(dir=self.home) as work:
            laboratory = Laboratory(
                self.pool, Path(work), [SPECIMENS], Limits(120.0), references=self.home / "references"
            )
            try:
                record = examine_workload(laboratory, audit, lambda *_: None, quick=self.quick)
            finally:
                laboratory.close()
        assert record is not None
        evidence = agreeing().evidence
        frozen = msgspec.structs.replace(
            evidence.frozen, audit=msgspec.structs.replace(evidence.frozen.audit, workload=audit.workload)
        )
        return record, decide(replace(evidence, frozen=frozen, workload=record))
