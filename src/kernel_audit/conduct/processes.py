"""The workload's step over several processes on this machine, each with its own devices: the way past one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.contract import Audit, Workload
from kernel_audit.matrix.laboratory import Done
from kernel_audit.records import ProcessesRun, RankRecord, StepPartition, StepRun
from kernel_audit.worker import Job, JobResult, Pool, read_arrays
from kernel_audit.workload.judging import judged_run
from kernel_audit.workload.rank import request_for

PROCESSES, DEVICES_EACH = 2, 4
DEADLINE_S = 60.0
MARGIN_S = 8.0  # what the job may take beyond the deadline, to end its processes and to write


def run_processes(
    pool: Pool,
    folder: Path,
    audit: Audit,
    roots: list[Path],
    partition: StepPartition,
    reference: Done | None,
    *,
    deadline_s: float = DEADLINE_S,
    memory_bytes: int,
) -> ProcessesRun:
    """The first baseline in the step over two processes of four devices, against the reference (None: values are not judged).

    However a process ends, this returns within `deadline_s` + 10 s.
    """
    names = [str(each) for each in roots]
    job = Job(
        function="kernel_audit.workload.processes_job:run_processes",
        arguments={
            "request": request_for(audit, names, partition),
            "roots": names,
            "processes": PROCESSES,
            "devices_each": DEVICES_EACH,
            "deadline_s": deadline_s,
        },
        folder=folder,
        deadline_s=deadline_s + MARGIN_S,
        total_s=deadline_s + MARGIN_S,
        memory_bytes=memory_bytes,
        import_path=tuple(names),
        loopback=True,
    )
    result = pool.run(job)
    return _record(audit, partition, result, folder, reference, deadline_s)


def _record(
    audit: Audit, partition: StepPartition, result: JobResult, folder: Path, reference: Done | None, deadline_s: float
) -> ProcessesRun:
    told = result.steps.get("ranks")
    about: dict[str, Any] = {
        "side": audit.baselines[0].name,
        "partition": partition.name,
        "processes": PROCESSES,
        "devices_each": DEVICES_EACH,
        "deadline_s": deadline_s,
        "seconds": result.seconds,
    }
    if told is None:
        error = dict(result.error or {})
        outcome = "stuck" if result.outcome == "timed-out" else "not-run"
        text = error.get("message") or error.get("what") or ""
        return ProcessesRun(outcome=outcome, note=f"{result.outcome}: {text}"[:300], **about)
    ranks = msgspec.convert(told["ranks"], list[RankRecord])
    about |= {"ranks": ranks, "cause": told["cause"], "collectives_by": told["told"].get("collectives", "")}
    if not told["told"]:
        return ProcessesRun(outcome=_outcome(ranks, told["cause"]), note=_note(ranks, result), **about)
    run = _judged(audit.workload, partition, told["told"], result, folder, reference)
    if run is None:
        return ProcessesRun(outcome="right", note="no reference: values were not judged", **about)
    counts = {(each.processes, each.devices) for each in ranks}
    if counts != {(PROCESSES, PROCESSES * DEVICES_EACH)}:
        return ProcessesRun(outcome="wrong", note=f"processes and devices as seen: {sorted(map(str, counts))}", **about)
    return ProcessesRun(
        outcome=run.outcome, errors=run.errors, note=", ".join([*run.codes, run.note]).strip(", "), **about
    )


def _outcome(ranks: list[RankRecord], cause: int | None) -> str:
    how = next((each.outcome for each in ranks if each.rank == cause), "raised")
    if how in ("stuck", "raised"):
        return how
    return "coordinator-lost" if cause == 0 else "rank-lost"


def _note(ranks: list[RankRecord], result: JobResult) -> str:
    told = [f"process {each.rank} {each.outcome} after {each.seconds:.1f} s, {each.note}" for each in ranks]
    raised = [line for line in result.stderr.splitlines() if "Error" in line]
    return "; ".join([*told, *(raised[-1:] if any(each.outcome == "raised" for each in ranks) else [])])[:400]


def _judged(
    workload: Workload | None,
    partition: StepPartition,
    told: dict[str, Any],
    result: JobResult,
    folder: Path,
    reference: Done | None,
) -> StepRun | None:
    if workload is None or reference is None or workload.host is None:
        return None
    inputs = reference.result.steps["check"]["inputs"]
    seen = {"inputs": told["inputs"]}
    about = {"side": "", "dtype": ""}
    observed = read_arrays(folder, "ranks")
    expected = read_arrays(reference.folder, partition.name)
    return judged_run(workload, partition, seen, observed, expected, inputs, about)
