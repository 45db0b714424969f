"""Rules about the complete step. A candidate is accused only where the workload's own step, with a baseline in it, is right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from kernel_audit.decision.finding import finding
from kernel_audit.evidence import Evidence, layout
from kernel_audit.records import Finding, StepRun, WorkloadRecord, step_run_name

# Told by how the step is laid out and what it did, whatever its values; the others explain values.
STANDING = frozenset(
    {
        *("silent-replication", "placed-otherwise", "donated-operand-reused", "tampered", "inputs-differ"),
        *("step-refused", "step-raised", "step-died"),
    }
)
UNEXPLAINED = "step-wrong"
WORKLOADS_OWN = "workload"


def reference_findings(evidence: Evidence) -> list[Finding]:
    """Whether there is a reference for the step, and whether it agrees with itself."""
    record = evidence.workload
    if record is None:
        return []
    told = record.reference
    if not told.independent:
        return [_finding("only-loss-checked", f"{record.step}: no host reference is stated")]
    if told.right:
        return []
    slope, parts = (f"{each:.1e}" if each is not None else "none" for each in (told.slope_error, told.additivity_error))
    text = f"{record.host}: gradient against slope off by {slope}, parts against the whole by {parts}"
    text += f"; {told.note}" if told.note else ""
    return [_finding("workload-reference-wrong", text)]


def step_findings(evidence: Evidence) -> list[Finding]:
    """What is wrong with the step: of the audit where a baseline in it is wrong, else of the kernel."""
    record = evidence.workload
    if record is None:
        return []
    own = _of_the_workload(record)
    found = []
    for code, text, runs in _faults(own):
        found.append(_finding("workload-step-wrong", f"{code}: {text}", runs))
    faulty = {(each.partition, each.dtype) for each in own if each.outcome not in ("right", "not-run")}
    judged = [
        each
        for each in record.runs
        if each.side == "candidate" and not (each.step == WORKLOADS_OWN and (each.partition, each.dtype) in faulty)
    ]
    return found + [_finding(code, text, runs) for code, text, runs in _faults(judged)]


def _of_the_workload(record: WorkloadRecord) -> list[StepRun]:
    """The runs of the workload's own step with a baseline in it."""
    return [each for each in record.runs if each.step == WORKLOADS_OWN and each.side != "candidate"]


def _faults(runs: Iterable[StepRun]) -> list[tuple[str, str, list[StepRun]]]:
    """(code, text, runs) of what is wrong: what stands by itself, and the one explanation that fits all wrong partitions."""
    all_runs = list(runs)
    wrong = [each for each in all_runs if each.outcome not in ("right", "not-run")]
    grouped: dict[str, list[StepRun]] = defaultdict(list)
    for each in wrong:
        for code in each.codes:
            if code in STANDING:
                grouped[code].append(each)
    explained = [each for each in wrong if set(each.codes) - STANDING]
    if explained:
        grouped[_common(explained)] += explained
    elif any(each.outcome == "wrong" and not each.codes for each in wrong):
        grouped[UNEXPLAINED] = [each for each in wrong if not each.codes]
    return [(code, _text(each, all_runs), each) for code, each in sorted(grouped.items())]


def _common(runs: list[StepRun]) -> str:
    """The explanation that most partitions share. Of equally many the one told first: partitions tell the likeliest first."""
    counted = Counter(code for each in runs for code in dict.fromkeys(each.codes) if code not in STANDING)
    most = max(counted.values())
    return next(code for code, count in counted.items() if count == most)


def _text(wrong: list[StepRun], runs: list[StepRun]) -> str:
    first = wrong[0]
    where = first.partition if first.dtype == "float32" else f"{first.partition} in {first.dtype}"
    told = f": {first.note}" if first.note else ""
    if first.gathered:
        told = f": {', '.join(first.gathered)} gathered whole on every device{told}"
    if first.donated:
        told = f": {', '.join(first.donated)} donated{told}"
    return f"{len(wrong)} of {len(runs)} runs, first {where}{told}"


def processes_findings(evidence: Evidence) -> list[Finding]:
    """What became of the step over several processes. A step that is wrong in one process says nothing new in several."""
    record = evidence.workload
    found = []
    own = _of_the_workload(record) if record is not None else []
    wrong_alone = any(each.outcome not in ("right", "not-run") for each in own)
    for each in record.processes if record is not None else []:
        if each.outcome == "wrong" and wrong_alone:
            continue
        if each.outcome == "wrong":
            found.append(_finding("processes-differ", f"{each.processes} processes, {each.partition}: {each.note}"))
        elif each.outcome != "right":
            cause = f", put down to process {each.cause}" if each.cause is not None else ""
            found.append(_finding("processes-failed", f"{each.outcome} after {each.seconds:.0f} s{cause}: {each.note}"))
    return found


def checked_text(record: WorkloadRecord) -> str:
    """What was shown of the step's mathematics, in words."""
    right = [each for each in record.runs if each.outcome == "right"]
    errors = [error for run in right for each in run.errors for error in (each.loss, each.gradient, each.state)]
    worst = max((each for each in errors if each is not None), default=0.0)
    names = len({each.partition for each in right})
    return (
        f"loss, gradient and {record.updates} updates within {worst:.1e} of float64 on {names} partitions, uneven counts and "
        f"devices without examples among them ({len(right)} of {len(record.runs)} runs)"
    )


def _finding(code: str, text: str, runs: Iterable[StepRun] = ()) -> Finding:
    return finding(code, text[:400], [step_run_name(each) for each in runs] or [layout.WORKLOAD])
