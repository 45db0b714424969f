"""What must hold of the record of the complete step: it is of this audit's workload, complete, and agrees with itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kernel_audit.contract import Audit
from kernel_audit.contract.step_sides import planned_partitions, planned_runs
from kernel_audit.evidence import layout
from kernel_audit.evidence.fault import AMBIGUOUS, INCONSISTENT, MISSING, Fault
from kernel_audit.evidence.frozen import Evidence
from kernel_audit.records import StepRun, WorkloadRecord, step_run_name

OUTCOMES = ("right", "wrong", "refused", "raised", "died", "not-run")


def workload_names(evidence: Evidence) -> set[str]:
    """What a finding about the workload may rest on: its runs."""
    record = evidence.workload
    return set() if record is None else {step_run_name(each) for each in record.runs}


def workload_faults(evidence: Evidence) -> Iterator[Fault]:
    """A workload that is stated and not there, or is another; runs of no partition; errors that contradict an outcome."""
    stated, record = evidence.frozen.audit.workload, evidence.workload
    if stated is None or record is None:
        if (stated is None) != (record is None) and evidence.cells:
            text = "the audit states a workload, and there is no record of it"
            yield _fault(text if record is None else "a workload that the audit does not state", MISSING)
        return
    for name, found, wanted in (
        ("audit", record.audit, evidence.frozen.audit.name),
        ("step", record.step, stated.step.text),
        ("seed", record.seed, stated.seed),
        ("bound", record.within, stated.within),
        ("updates", record.updates, stated.updates),
        ("sizes", record.dims, stated.dims),
    ):
        if found != wanted:
            yield _fault(f"its {name} is {found!r}, and the audit says {wanted!r}")
    yield from _plan_faults(evidence.frozen.audit, record)
    known = {each.name for each in record.partitions}
    for name, count in Counter(step_run_name(each) for each in record.runs).items():
        if count > 1:
            yield _fault(f"two records of {name!r}", AMBIGUOUS)
    for run in record.runs:
        if run.partition not in known:
            yield _fault(f"{step_run_name(run)!r} is on an unknown partition")
        for text in _within(record, run):
            yield _fault(f"{step_run_name(run)!r} {text}")


def _plan_faults(audit: Audit, record: WorkloadRecord) -> Iterator[Fault]:
    """The record's partitions and runs against those that the audit plans."""
    if record.partitions != planned_partitions(audit, record):
        yield _fault("its partitions are not those of the audit's workload")
    planned, found = planned_runs(audit, record), {step_run_name(each) for each in record.runs}
    for name in planned:
        if name not in found:
            yield _fault(f"the planned run {name!r} has no record", MISSING)
    for name in sorted(found - set(planned)):
        yield _fault(f"{name!r} was not planned")


def _within(record: WorkloadRecord, run: StepRun) -> Iterator[str]:
    if run.outcome not in OUTCOMES:
        yield f"has the unknown outcome {run.outcome!r}"
    if run.outcome != "right":
        return
    if run.codes or run.copies_equal is not True or not all(run.padding.values()):
        yield "is right, and something speaks against it"
    if record.host and len(run.errors) != record.updates:
        yield f"is right after {len(run.errors)} of {record.updates} updates"
    for each in run.errors:
        told = [each.loss, each.state] + ([each.gradient] if each.gradient is not None else [])
        if any(error is None or error > record.within for error in told):
            yield f"is right, and an error is above {record.within}"
            return


def _fault(text: str, kind: str = INCONSISTENT) -> Fault:
    return Fault(file=layout.WORKLOAD, kind=kind, text=text)
