"""The review: findings and evidence mapped onto five criteria, each *accept*, *revise* or *unresolved*."""

from __future__ import annotations

from kernel_audit.decision.profile import unfit
from kernel_audit.decision.reasons import reasons
from kernel_audit.decision.workload import checked_text
from kernel_audit.evidence import Evidence
from kernel_audit.records import Criterion, Finding


def review(evidence: Evidence, findings: list[Finding]) -> list[Criterion]:
    """The five criteria in order."""
    return [
        _mathematics(evidence, findings),
        _profiling(evidence, findings),
        _kernel_correctness(evidence, findings),
        _target_qualification(findings),
        _decision(evidence, findings),
    ]


def _codes(findings: list[Finding], criterion: str, *effects: str) -> list[str]:
    table = reasons()
    chosen = [each.code for each in findings if table[each.code].criterion == criterion]
    return list(dict.fromkeys(code for code in chosen if table[code].effect in effects))


def _mathematics(evidence: Evidence, findings: list[Finding]) -> Criterion:
    record = evidence.workload
    if record is not None:
        broken = _codes(findings, "mathematics", "revise", "forbid") + _only_loss(findings)
        if broken:
            text = "the complete step was not shown to be right"
            return Criterion(name="mathematics", verdict="revise", text=text, codes=broken)
        return Criterion(name="mathematics", verdict="accept", text=checked_text(record))
    step = evidence.frozen.audit.worth.step
    text = (
        f"the step {step} was not run: its loss, gradient and updates are unchecked"
        if step
        else "the audit names no step, so there is no loss, gradient or update to check"
    )
    return Criterion(
        name="mathematics", verdict="unresolved", text=text, codes=_codes(findings, "mathematics", "revise", "forbid")
    )


def _only_loss(findings: list[Finding]) -> list[str]:
    return [each.code for each in findings if each.code == "only-loss-checked"]


def _profiling(evidence: Evidence, findings: list[Finding]) -> Criterion:
    codes = _codes(findings, "profiling", "decline", "note")
    record = evidence.profile
    if record is None:
        text = "no profile of a complete step: what a faster kernel could gain is unknown"
        return Criterion(name="profiling", verdict="unresolved", text=text, codes=codes)
    faults = [each.code for each in unfit(record)]
    if faults:
        return Criterion(
            name="profiling",
            verdict="revise",
            text="the profile's times are not the step's on that platform",
            codes=faults,
        )
    text = (
        f"compiled apart from {len(record.warm.wall_ns)} warm, synchronised steps without a compilation; traced in a pass of "
        f"its own, regions sum to the wall, {record.mapping.get('unmapped', 0.0):.1%} unmapped"
    )
    if record.logical:
        text += "; shares of logical devices, conditional elsewhere"
    return Criterion(name="profiling", verdict="accept", text=text, codes=codes)


def _kernel_correctness(evidence: Evidence, findings: list[Finding]) -> Criterion:
    broken = _codes(findings, "kernel-correctness", "revise")
    faults = _codes(findings, "kernel-correctness", "forbid")
    open_ends = [code for code in _codes(findings, "kernel-correctness", "note") if code == "divisible-only"]
    agreeing = [each for each in evidence.cells if each.outcome == "agrees"]
    dtypes = sorted({each.dtype for each in agreeing})
    refused = sum(each.outcome == "refused" for each in evidence.refusals)
    if broken:
        return Criterion(
            name="kernel-correctness", verdict="revise", text="promises of the contract are broken", codes=broken
        )
    if faults or open_ends or not agreeing:
        text = "the audit cannot show it" if faults else "only part of the contract was checked"
        return Criterion(name="kernel-correctness", verdict="unresolved", text=text, codes=faults + open_ends)
    rejected = sum(each.outcome == each.expected == "rejected" for each in evidence.controls)
    text = (
        f"{len(agreeing)} cells agree ({', '.join(dtypes)}), tails included; {refused} refusals kept; the same comparison "
        f"rejected {rejected} known-bad results"
    )
    return Criterion(name="kernel-correctness", verdict="accept", text=text)


def _target_qualification(findings: list[Finding]) -> Criterion:
    broken = _codes(findings, "target-qualification", "revise")
    if broken:
        return Criterion(
            name="target-qualification",
            verdict="revise",
            text="a simulation could pass for an execution",
            codes=broken,
        )
    return Criterion(
        name="target-qualification",
        verdict="unresolved",
        text="nothing was run on a target",
        codes=_codes(findings, "target-qualification", "await"),
    )


def _decision(evidence: Evidence, findings: list[Finding]) -> Criterion:
    if _codes(findings, "decision", "revise"):
        return Criterion(
            name="decision",
            verdict="revise",
            text="a claim exceeds its evidence",
            codes=_codes(findings, "decision", "revise"),
        )
    planned = {each.id for each in evidence.frozen.plan.cells}
    if planned != {each.id for each in evidence.cells}:
        return Criterion(name="decision", verdict="unresolved", text="cells of the plan are missing")
    return Criterion(
        name="decision",
        verdict="accept",
        text="every planned cell is reported, unfavourable ones too, and no claim goes beyond interpretation",
    )
