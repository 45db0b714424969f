"""The review: findings and evidence mapped onto five criteria, each *accept*, *revise* or *unresolved*."""

from __future__ import annotations

from kernel_audit.contract.step_sides import CANDIDATE
from kernel_audit.decision.completeness import runs_missing
from kernel_audit.decision.finding import finding
from kernel_audit.decision.profile import unfit
from kernel_audit.decision.reasons import reasons
from kernel_audit.decision.target_rules import Targets
from kernel_audit.decision.workload import checked_text
from kernel_audit.decision.worth import sound
from kernel_audit.evidence import Evidence
from kernel_audit.records import PROGRAM, STEP, Criterion, Finding, ProfileRecord, Receipt, WorkloadRecord


def review(evidence: Evidence, findings: list[Finding], targets: Targets) -> list[Criterion]:
    """The five criteria in order."""
    return [
        _mathematics(evidence, findings, targets),
        _profiling(evidence, findings, targets),
        _kernel_correctness(evidence, findings),
        _target_qualification(findings, targets),
        _decision(evidence, findings, targets),
    ]


def correctness_open(evidence: Evidence, findings: list[Finding]) -> list[Finding]:
    """What a device ran is of no use to a claim while the criterion of correctness is not accepted."""
    criterion = _kernel_correctness(evidence, findings)
    if criterion.verdict == "accept":
        return []
    return [finding("correctness-open", f"{criterion.text}: {', '.join(criterion.codes) or 'no cell agrees'}")]


def _codes(findings: list[Finding], criterion: str, *effects: str) -> list[str]:
    table = reasons()
    chosen = [each.code for each in findings if table[each.code].criterion == criterion]
    return list(dict.fromkeys(code for code in chosen if table[code].effect in effects))


def _mathematics(evidence: Evidence, findings: list[Finding], targets: Targets) -> Criterion:
    step = evidence.frozen.audit.worth.step
    broken = _codes(findings, "mathematics", "revise", "forbid") + _only_loss(findings)
    right = [each for each in _steps(targets) if each.checks and not any(check.differing for check in each.checks)]
    if evidence.workload is not None and broken:
        text = "the complete step was not shown to be right"
        return Criterion(name="mathematics", verdict="revise", text=text, codes=broken)
    if right and not broken and len(right) == len(_steps(targets)):
        kinds = ", ".join(sorted({each.device.kind for each in right}))
        text = f"every result of {step}, kernel in place, agrees with the step in float64 on the host ({kinds})"
        return Criterion(name="mathematics", verdict="accept", text=text)
    if evidence.workload is not None:
        return _of_workload(evidence, evidence.workload)
    text = (
        f"the step {step} was not run: its loss, gradient and updates are unchecked"
        if step
        else "the audit names no step, so there is no loss, gradient or update to check"
    )
    return Criterion(name="mathematics", verdict="revise" if broken else "unresolved", text=text, codes=broken)


def _of_workload(evidence: Evidence, record: WorkloadRecord) -> Criterion:
    """Accepted where every planned run of the step is right, and some are with a baseline and with the candidate."""
    right = [each for each in record.runs if each.outcome == "right"]
    told = {"the candidate" if each.side == CANDIDATE else "a baseline" for each in right}
    without = [each for each in ("a baseline", "the candidate") if each not in told]
    if without:
        text = f"the complete step has no right run with {' or '.join(without)} in place"
        return Criterion(name="mathematics", verdict="unresolved", text=text)
    if missing := runs_missing(evidence):
        text = f"{len(missing)} planned runs of the complete step tell nothing of its values, first {missing[0]}"
        return Criterion(name="mathematics", verdict="unresolved", text=text)
    return Criterion(name="mathematics", verdict="accept", text=checked_text(record))


def _only_loss(findings: list[Finding]) -> list[str]:
    return [each.code for each in findings if each.code == "only-loss-checked"]


def _steps(targets: Targets) -> list[Receipt]:
    return [each for each in targets.valid if each.part == STEP and each.verdict is not None]


def _profiling(evidence: Evidence, findings: list[Finding], targets: Targets) -> Criterion:
    codes = _codes(findings, "profiling", "decline", "note")
    if evidence.profile is not None:
        return _of_profile(evidence.profile, codes)
    if _steps(targets) and all(sound(each) for each in _steps(targets)):
        text = "what the kernel gains was measured in the complete step itself, on the target: no share of a profile is needed"
        return Criterion(name="profiling", verdict="accept", text=text, codes=codes)
    text = "no profile of a complete step: what a faster kernel could gain is unknown"
    return Criterion(name="profiling", verdict="unresolved", text=text, codes=codes)


def _of_profile(record: ProfileRecord, codes: list[str]) -> Criterion:
    if faults := [each.code for each in unfit(record)]:
        text = "the profile's times are not the step's on that platform"
        return Criterion(name="profiling", verdict="revise", text=text, codes=faults)
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


def _target_qualification(findings: list[Finding], targets: Targets) -> Criterion:
    broken = _codes(findings, "target-qualification", "revise")
    if broken:
        return Criterion(
            name="target-qualification",
            verdict="revise",
            text="a promise is broken on a target, or a simulation could pass for an execution",
            codes=broken,
        )
    held = _codes(findings, "target-qualification", "hold", "await")
    ran = [each for each in targets.valid if each.part == PROGRAM and each.verdict is not None]
    if ran and not held:
        kinds = ", ".join(sorted({each.device.kind for each in ran}))
        return Criterion(
            name="target-qualification",
            verdict="accept",
            text=f"run on {kinds}, not interpreted, on every declared target: complete results and timed ones are right",
        )
    return Criterion(
        name="target-qualification",
        verdict="unresolved",
        text="not every declared target has run it" if ran else "nothing was run on a target",
        codes=held,
    )


def _decision(evidence: Evidence, findings: list[Finding], targets: Targets) -> Criterion:
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
    if left := _codes(findings, "decision", "hold"):
        return Criterion(name="decision", verdict="unresolved", text="evidence was left out", codes=left)
    return Criterion(
        name="decision",
        verdict="accept",
        text="every planned cell is reported, unfavourable ones too, and no claim goes beyond "
        + ("what its receipts carry" if targets.valid else "interpretation"),
    )
