"""From evidence to a decision: rules, then the strongest effect, then the review. The same code for `run` and `verify`."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from kernel_audit.decision.reasons import reasons
from kernel_audit.decision.review import review
from kernel_audit.decision.rules import RULES, declared_targets
from kernel_audit.decision.strangers import require_known
from kernel_audit.decision.without_device import compiled_text
from kernel_audit.evidence import Evidence
from kernel_audit.records import AWAIT, BASELINE, REVISE, Cell, Decision, Finding, Regime


def decide(evidence: Evidence) -> Decision:
    """The decision that the evidence carries; no stronger one. Raises BundleError for words that no rule knows."""
    require_known(evidence)
    findings = [each for rule in RULES for each in rule(evidence)]
    findings.sort(key=lambda each: (_rank(each), each.code, each.text))
    decision = _strongest(findings)
    return Decision(
        audit=evidence.frozen.audit.name,
        decision=decision,
        summary=_summary(decision, findings, evidence),
        findings=findings,
        regimes=_regimes(evidence, findings),
        review=review(evidence, findings),
        level=_level(evidence),
        levels=_levels(evidence),
        counts=dict(sorted(Counter(each.outcome for each in evidence.cells).items())),
        next_command=_next_command(decision, evidence),
    )


def exit_code(decision: Decision) -> int:
    """0 completed, 1 *revise*, 2 when faults of audit, contract or environment forbid a decision."""
    if decision.decision is None:
        return 2
    return 1 if decision.decision == REVISE else 0


def _effect(finding: Finding) -> str:
    return reasons()[finding.code].effect


def _rank(finding: Finding) -> int:
    return ("forbid", "revise", "decline", "await", "note").index(_effect(finding))


def _strongest(findings: list[Finding]) -> str | None:
    effects = {_effect(each) for each in findings}
    # A contract that nobody keeps somewhere does not excuse a promise that only the kernel breaks elsewhere.
    forbidden = [each for each in findings if _effect(each) == "forbid"]
    if any(each.subject != "contract" for each in forbidden):
        return None
    if "revise" in effects:
        return REVISE
    if forbidden:
        return None
    return BASELINE if "decline" in effects else AWAIT


def _summary(decision: str | None, findings: list[Finding], evidence: Evidence) -> str:
    agreeing = sum(each.outcome == "agrees" for each in evidence.cells)
    judged = sum(each.judged for each in evidence.cells)
    if decision is None:
        cause = next(each for each in findings if _effect(each) == "forbid")
        return f"No decision: a fault of the {cause.subject} ({cause.code}). {cause.text}"
    if decision == REVISE:
        broken = [each for each in findings if _effect(each) == "revise"]
        return f"The kernel breaks {len(broken)} promise{'s' if len(broken) > 1 else ''}. {broken[0].code}: {broken[0].text}"
    if decision == BASELINE:
        declined = next(each for each in findings if _effect(each) == "decline")
        return f"Use the baseline. {declined.code}: {declined.text}."
    targets = ", ".join(declared_targets(evidence)) or "no target"
    return (
        f"Correct in {agreeing} of {judged} judged cells and not ruled out; nothing is known about its worth, since nothing "
        f"was run on {targets}."
    )


def _regimes(evidence: Evidence, findings: list[Finding]) -> list[Regime]:
    """One a mode; a finding that names cells of one mode only counts there."""
    by_mode: dict[str, list[Cell]] = {}
    for cell in evidence.cells:
        by_mode.setdefault(_mode_text(cell.mode), []).append(cell)
    known = {each.id for each in evidence.cells}
    regimes = []
    for name, cells in sorted(by_mode.items()):
        ids = {each.id for each in cells}
        here = [each for each in findings if not (known & set(each.records)) or ids & set(each.records)]
        codes = list(dict.fromkeys(each.code for each in here if _effect(each) != "note"))
        regimes.append(Regime(name=name, decision=_strongest(here), codes=codes))
    return regimes


def _mode_text(mode: dict[str, Any]) -> str:
    return ", ".join(f"{key}={json.dumps(value)}" for key, value in sorted(mode.items())) or "all"


def _levels(evidence: Evidence) -> dict[str, str]:
    kernels = {kernel.digest for each in evidence.programs if each.side == "candidate" for kernel in each.kernels}
    engines = Counter(each.engine for each in evidence.cells if each.output_digest is not None)
    ran = ", ".join(f"{count} cells in the {engine} interpreter" for engine, count in sorted(_named(engines).items()))
    programs = sum(each.side == "candidate" for each in evidence.programs)
    return {
        "traced": f"{programs} programs, {len(kernels)} distinct kernels",
        "interpreted": ran or "nothing",
        "compiled": compiled_text(evidence),
        "executed": "nothing",
        "end-to-end": "nothing",
    }


def _level(evidence: Evidence) -> str:
    """The highest level at which something was observed."""
    if any(each.accepted and each.side == "candidate" for each in evidence.compiled):
        return "compiled"
    return "interpreted" if any(each.output_digest for each in evidence.cells) else "traced"


def _named(engines: Counter[str]) -> dict[str, int]:
    return {name.removesuffix("-interpreter").replace("tpu", "TPU"): count for name, count in engines.items()}


def _next_command(decision: str | None, evidence: Evidence) -> str:
    name = evidence.frozen.reference
    if decision == REVISE:
        return f"correct the kernel, then: kernel-audit check {name}"
    if decision is None:
        return "kernel-audit explain CODE for each finding above"
    if decision == BASELINE:
        return f"kernel-audit profile {name} on another platform, or look for the region that matters"
    targets = declared_targets(evidence)
    if not targets:
        return "state targets= in the audit"
    return f"on a {targets[0]} device: kernel-audit measure {name} --target {targets[0]} (not in this version yet)"
