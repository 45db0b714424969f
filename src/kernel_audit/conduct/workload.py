"""The workload of an audit examined: the complete step with a baseline, then with the candidate, on logical devices."""

from __future__ import annotations

import tempfile
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import msgspec

from kernel_audit.conduct.processes import DEADLINE_S, run_processes
from kernel_audit.contract import Audit, FunctionRef, Workload
from kernel_audit.contract.step_partitions import MOST_DEVICES, partitions
from kernel_audit.contract.step_sides import CANDIDATE, StepSide, sides_of
from kernel_audit.errors import AuditFileError
from kernel_audit.matrix.check import Progress
from kernel_audit.matrix.laboratory import Done, Laboratory
from kernel_audit.records import Aggregation, HostCheck, ProcessesRun, StepPartition, StepRun, WorkloadRecord
from kernel_audit.worker import read_arrays
from kernel_audit.workload.exhibit import aggregation_exhibit
from kernel_audit.workload.inputs import RULE
from kernel_audit.workload.judging import gathered_whole, judged_run, ungiven_run

WORKLOAD_PRELOAD = ("kernel_audit.workload.host_job", "kernel_audit.workload.step_job")
OVER_PROCESSES = "data=8/13"
_JAX = {"jax_num_cpu_devices": MOST_DEVICES}
SLOPE_BOUND = 1e-5
ADDITIVITY_BOUND = 1e-9


def examine_workload(
    laboratory: Laboratory,
    audit: Audit,
    progress: Progress,
    *,
    quick: bool = False,
    processes: bool = True,
    processes_deadline_s: float = DEADLINE_S,
) -> WorkloadRecord | None:
    """Everything about the audit's workload; None for an audit without one. `quick`: four partitions instead of all.
    `processes`: run over two processes, too, where the audit has a baseline.

    Raises AuditFileError for a workload whose step, host or inputs are not there or have another form.
    """
    workload = audit.workload
    if workload is None:
        return None
    cut = partitions(workload.dims[workload.examples], quick=quick)
    sides = sides_of(audit, workload)
    progress("the complete step on logical devices", 0, len(sides))
    bindings = {msgspec.json.encode(each.binding): each.binding for each in sides}
    hosts = {key: _started_host(laboratory, audit, each, cut) for key, each in bindings.items()}
    running = [(each, _started(laboratory, audit, each, cut)) for each in sides]
    references = {key: _finished(each.result()) for key, each in hosts.items()}
    first = references[msgspec.json.encode(sides[0].binding)]
    distributed = (
        laboratory.start(_over_processes, laboratory, audit, cut, first, processes_deadline_s)
        if processes and audit.baselines
        else None
    )
    runs: list[StepRun] = []
    for number, (side, future) in enumerate(running, start=1):
        reference = references[msgspec.json.encode(side.binding)]
        runs += _runs(workload, side, future.result(), reference, side.of(cut))
        progress("the complete step on logical devices", number, len(sides))
    return WorkloadRecord(
        audit=audit.name,
        step=workload.step.text,
        host=workload.host.text if workload.host else "",
        seed=workload.seed,
        within=workload.within,
        updates=workload.updates,
        dims=workload.dims,
        examples=workload.examples,
        compute=workload.precision.compute,
        parameters=workload.precision.parameters,
        output=workload.precision.output,
        reference=_host_check(workload, first),
        partitions=cut,
        runs=runs,
        aggregation=_exhibit(workload, first, cut),
        processes=[distributed.result()] if distributed is not None else [],
    )


def reference_of(laboratory: Laboratory, audit: Audit, binding: dict[str, str], cut: list[StepPartition]) -> Done:
    """The host's values for these partitions at one choice of dtypes. Raises as `examine_workload`."""
    return _finished(_started_host(laboratory, audit, binding, cut).result())


def _over_processes(
    laboratory: Laboratory, audit: Audit, cut: list[StepPartition], reference: Done, deadline_s: float
) -> ProcessesRun:
    partition = next(each for each in cut if each.name == OVER_PROCESSES)
    return run_processes(
        laboratory.pool,
        Path(tempfile.mkdtemp(prefix="processes-", dir=laboratory.work)),
        audit,
        laboratory.roots,
        partition,
        reference,
        deadline_s=deadline_s,
        memory_bytes=laboratory.limits.memory_bytes,
    )


def _started_host(
    laboratory: Laboratory, audit: Audit, binding: dict[str, str], cut: list[StepPartition]
) -> Future[Done]:
    arguments = {
        "audit": msgspec.to_builtins(_shared(audit, step=FunctionRef(module="nothing", name="nothing"))),
        "roots": [str(each) for each in laboratory.roots],
        "binding": binding,
        "partitions": msgspec.to_builtins(cut),
    }
    return laboratory.start(
        laboratory.run, "step-host", "kernel_audit.workload.host_job:references", arguments, reference=True
    )


def _shared(audit: Audit, **changes: Any) -> Audit:
    """The audit without the candidate and its step, so that candidates under it share what is run for it."""
    nobody = FunctionRef(module="nothing", name="nothing")
    workload = msgspec.structs.replace(audit.workload, candidate_step=None, **changes)  # type: ignore[type-var]
    return msgspec.structs.replace(audit, candidate=nobody, workload=workload)


def _started(laboratory: Laboratory, audit: Audit, side: StepSide, cut: list[StepPartition]) -> Future[Done]:
    ours = side.name != CANDIDATE
    arguments = {
        "audit": msgspec.to_builtins(_shared(audit) if ours else audit),
        "roots": [str(each) for each in laboratory.roots],
        "function": msgspec.to_builtins(side.function),
        "keywords": {**side.fixed, **side.configuration},
        "step": msgspec.to_builtins(side.step),
        "binding": side.binding,
        "partitions": msgspec.to_builtins(side.of(cut)),
    }
    function = "kernel_audit.workload.step_job:run_steps"
    return laboratory.start(laboratory.run, f"step-{side.name}", function, arguments, jax_config=_JAX, reference=ours)


def _finished(done: Done) -> Done:
    """The reference, which must finish. Raises what its worker raised, AuditFileError where it ended otherwise."""
    if (stated := done.result.audit_error()) is not None:
        raise stated
    if done.result.outcome != "finished":
        error = done.result.error or {}
        raise AuditFileError(
            "the workload's reference did not finish",
            stage="workload",
            where="host and inputs of the workload",
            expected="loss, gradients and new state as float64",
            got=f"{done.result.outcome}: {error.get('type')}: {error.get('message')}"[:400],
        )
    return done


def _runs(workload: Workload, side: StepSide, done: Done, reference: Done, cut: list[StepPartition]) -> list[StepRun]:
    found = []
    inputs = reference.result.steps["check"]["inputs"]
    whole = gathered_whole(workload, cut, done.result.steps, side.binding)
    for partition in cut:
        about = {**side.about, "gathered": whole.get(partition.name, [])}
        told = done.result.steps.get(partition.name)
        if told is None:
            found.append(ungiven_run(partition, done.result, about))
            continue
        observed = read_arrays(done.folder, partition.name)
        expected = read_arrays(reference.folder, partition.name) if workload.host else {}
        found.append(judged_run(workload, partition, told, observed, expected, inputs, about))
    return found


def _host_check(workload: Workload, done: Done) -> HostCheck:
    told = done.result.steps["check"]
    if workload.host is None:
        return HostCheck(
            independent=False, rule=told["rule"] or RULE, inputs=told["inputs"], note="no reference is stated"
        )
    slope, additivity = told["slope_error"], told["additivity_error"]
    diverges = None in told["losses"] or None in told["gradient_norms"]
    right = slope <= SLOPE_BOUND and additivity <= ADDITIVITY_BOUND and not diverges
    return HostCheck(
        independent=True,
        rule=told["rule"] or RULE,
        slope_error=slope,
        additivity_error=additivity,
        losses=told["losses"],
        gradient_norms=told["gradient_norms"],
        inputs=told["inputs"],
        right=right,
        note="the sequence of updates leaves the finite numbers" if diverges else "",
    )


def _exhibit(workload: Workload, done: Done, cut: list[StepPartition]) -> list[Aggregation]:
    if workload.host is None:
        return []
    return [
        aggregation_exhibit(workload, each, read_arrays(done.folder, each.name))
        for each in cut
        if each.name in ("data=2/3+5", "data=8/13", "data=2/4+4")
    ]


__all__ = ["WORKLOAD_PRELOAD", "examine_workload", "reference_of"]
