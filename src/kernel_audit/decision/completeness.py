"""What must be there before a device's times mean anything: every planned cell, control and refusal. A gap hides a loss."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kernel_audit.contract.step_sides import planned_runs
from kernel_audit.decision.finding import finding
from kernel_audit.evidence import Evidence
from kernel_audit.records import Finding, encode, step_run_name

ALWAYS = ("oracle", "zeros")


def evidence_missing(evidence: Evidence) -> list[Finding]:
    """One finding with everything that is planned and not there; none where nothing is missing."""
    gaps = list(_gaps(evidence))
    if not gaps:
        return []
    return [finding("evidence-missing", f"{len(gaps)} records are not there, first {gaps[0]}")]


def _gaps(evidence: Evidence) -> Iterator[str]:
    found = {each.id for each in evidence.cells}
    yield from (f"cell {each.id}" for each in evidence.frozen.plan.cells if each.id not in found)
    refused = {each.name for each in evidence.refusals}
    yield from (f"refusal {each.name}" for each in evidence.frozen.audit.refusals if each.name not in refused)
    yield from _missing_programs(evidence)
    yield from _missing_controls(evidence)
    yield from _missing_compilations(evidence)
    yield from (f"the run {each}" for each in runs_missing(evidence))


def runs_missing(evidence: Evidence) -> list[str]:
    """Names of the runs of the complete step that are planned and tell nothing of its values."""
    record = evidence.workload
    if record is None:
        return []
    told = {step_run_name(each) for each in record.runs if each.outcome in ("right", "wrong")}
    return [each for each in planned_runs(evidence.frozen.audit, record) if each not in told]


def _missing_programs(evidence: Evidence) -> Iterator[str]:
    known = {each.digest for each in evidence.programs if each.side == "candidate"}
    read = {each.program.partition("/")[0] for each in evidence.kernels}
    for digest in sorted({each.program for each in evidence.cells if each.program} - known):
        yield f"program {digest[:19]}"
    for each in evidence.programs:
        if each.side == "candidate" and each.kernels and each.key not in read:
            yield f"the reading of program {each.key}"


def _missing_controls(evidence: Evidence) -> Iterator[str]:
    """At every fixture, dtype and mode that was judged: the controls that are anywhere, and those that are always there."""
    audit = evidence.frozen.audit
    wanted = {*ALWAYS, *(each.name for each in audit.controls), *(f"baseline:{each.name}" for each in audit.baselines)}
    wanted |= {each.name for each in evidence.controls}
    there: dict[tuple[str, str, bytes], set[str]] = defaultdict(set)
    for each in evidence.controls:
        there[each.fixture, each.dtype, encode(each.mode)].add(each.name)
    places = {(each.fixture, each.dtype, encode(each.mode)) for each in evidence.cells if each.judged}
    for place in sorted(places):
        for name in sorted(wanted - there[place]):
            yield f"control {name} at {place[0]} {place[1]}"


def _missing_compilations(evidence: Evidence) -> Iterator[str]:
    """Where a target's compiler was asked, it was asked about every configuration."""
    audit = evidence.frozen.audit
    there: dict[str, set[bytes]] = defaultdict(set)
    for each in evidence.compiled:
        if each.side == "candidate" and each.part == "program":
            there[each.target].add(encode([each.configuration, each.dtype]))
    dtypes = {each.dtype for each in evidence.compiled if each.part == "program"}
    for target, known in sorted(there.items()):
        for configuration in audit.configurations_for(target):
            for dtype in sorted(dtypes):
                if encode([configuration, dtype]) not in known:
                    yield f"the compilation of {configuration} in {dtype} for {target}"
