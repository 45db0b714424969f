"""A small record of a complete step that was right, for tests of what is made of records."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
from sample_evidence import small_audit

from kernel_audit.contract.step_partitions import partitions
from kernel_audit.contract.step_sides import sides_of
from kernel_audit.evidence import Evidence
from kernel_audit.kernels.audits import BUILT_IN
from kernel_audit.records import (
    Aggregation,
    HostCheck,
    PlacedArray,
    ProcessesRun,
    RankRecord,
    StepCollective,
    StepErrors,
    StepPartition,
    StepRun,
    WorkloadRecord,
)

PARTITION = StepPartition(name="data=2/3+5", mesh={"data": 2}, counts=[3, 5], rows=5, whole=False)
PARTITIONS = partitions(1000, quick=True)
OPERANDS = [
    PlacedArray(
        name="X",
        dtype="float32",
        shape=[10, 64],
        spec="P('data',)",
        shards=[[[0, 5], [0, 64]], [[5, 10], [0, 64]]],
        as_asked=True,
    ),
    PlacedArray(name="w", dtype="float32", shape=[64], spec="P()", shards=[[[0, 64]], [[0, 64]]], as_asked=True),
]


def run(**changes: Any) -> StepRun:
    """A right run of the workload's own step, with changes."""
    fields: dict[str, Any] = {
        "partition": PARTITION.name,
        "side": "fused",
        "dtype": "float32",
        "outcome": "right",
        "errors": [StepErrors(loss=1e-7, gradient=2e-7, state=3e-7)] * 5,
        "losses": [5.0, 4.0, 3.0, 2.0, 1.0],
        "copies_equal": True,
        "padding": {"nan": True, "finite": True},
        "check_vma": "passes",
        "operands": OPERANDS,
        "collectives": [StepCollective(kind="all-reduce", payload_bytes=260, wire_bytes=260, groups=[[0, 1]])],
    }
    return StepRun(**{**fields, **changes})


def whole() -> list[StepRun]:
    """Every run that the audit "doubling" plans on few partitions, all of them right."""
    audit = small_audit()
    workload = BUILT_IN["regression"].workload
    assert workload is not None
    return [
        run(**side.about, partition=each.name) for side in sides_of(audit, workload) for each in side.of(PARTITIONS)
    ]


def record(*runs: StepRun, **changes: Any) -> WorkloadRecord:
    """The record of an audit called "doubling"; without runs: every planned one, right."""
    workload = BUILT_IN["regression"].workload
    assert workload is not None
    fields: dict[str, Any] = {
        "audit": "doubling",
        "step": workload.step.text,
        "host": "numpy:host",
        "seed": workload.seed,
        "within": workload.within,
        "updates": workload.updates,
        "dims": workload.dims,
        "examples": "n",
        "compute": "float32",
        "parameters": "float32",
        "output": "float32",
        "reference": HostCheck(independent=True, rule="as drawn", slope_error=1e-10, additivity_error=1e-16),
        "partitions": PARTITIONS,
        "runs": list(runs) or whole(),
        "aggregation": [
            Aggregation(
                counts=[3, 5],
                unweighted_loss_error=0.11,
                unweighted_gradient_error=0.2,
                unweighted_codes=["unweighted-means"],
                weighted_loss_error=0.0,
                weighted_gradient_error=1e-16,
                weighted_codes=[],
            )
        ],
        "processes": [
            ProcessesRun(
                side="fused",
                partition=PARTITION.name,
                processes=2,
                devices_each=4,
                outcome="right",
                deadline_s=60.0,
                seconds=2.5,
                ranks=[RankRecord(rank=0, outcome="finished", exit_code=0, seconds=2.4)],
                errors=[StepErrors(loss=1e-7, gradient=1e-7, state=1e-7)],
            )
        ],
    }
    return WorkloadRecord(**{**fields, **changes})


def with_workload(evidence: Evidence, workload: WorkloadRecord | None) -> Evidence:
    """Evidence whose audit states the regression's workload."""
    audit = msgspec.structs.replace(evidence.frozen.audit, workload=BUILT_IN["regression"].workload)
    return replace(evidence, frozen=msgspec.structs.replace(evidence.frozen, audit=audit), workload=workload)
