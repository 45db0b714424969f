"""From evidence to a decision: rules, then the strongest effect, then the review. The same code for `run` and `verify`."""

from __future__ import annotations

from collections import Counter

from kernel_audit.contract.regimes import mode_text, regime_text
from kernel_audit.decision.completeness import evidence_missing
from kernel_audit.decision.dispatch import mean_text, table_text
from kernel_audit.decision.finding import finding
from kernel_audit.decision.profile import is_about
from kernel_audit.decision.reasons import EFFECTS, reasons
from kernel_audit.decision.review import correctness_open, review
from kernel_audit.decision.rules import RULES, declared_targets
from kernel_audit.decision.strangers import require_known
from kernel_audit.decision.target_rules import Targets, on_targets
from kernel_audit.decision.without_device import compiled_text
from kernel_audit.decision.workload import step_findings
from kernel_audit.evidence import Evidence
from kernel_audit.records import AWAIT, BASELINE, KEEP, PROGRAM, REVISE, STEP, Cell, Decision, Finding, Regime


def decide(evidence: Evidence) -> Decision:
    """The decision that the evidence carries; no stronger one. Raises BundleError for words that no rule knows."""
    require_known(evidence)
    general = [each for rule in RULES for each in rule(evidence)]
    targets = on_targets(evidence)
    if targets.regimes:
        general += [*targets.ignored, *evidence_missing(evidence), *correctness_open(evidence, general)]
    findings = [*general, *(each for regime in targets.regimes for each in regime.findings)]
    regimes = _on_targets(evidence, general, targets) if targets.regimes else _regimes(evidence, general)
    decision = _overall(general, regimes) if targets.regimes else _strongest(general)
    if decision == AWAIT and {KEEP, BASELINE} <= {each.decision for each in regimes}:
        worth = mean_text(regimes, targets.valid)
        findings.append(finding("dispatcher-unmeasured", table_text(regimes) + (f". {worth}" if worth else "")))
    findings.sort(key=lambda each: (_rank(each), each.code, each.text))
    return Decision(
        audit=evidence.frozen.audit.name,
        decision=decision,
        summary=_summary(decision, findings, evidence, regimes),
        findings=findings,
        regimes=regimes,
        review=review(evidence, findings, targets),
        level=_level(evidence, targets),
        levels=_levels(evidence, targets),
        counts=dict(sorted(Counter(each.outcome for each in evidence.cells).items())),
        next_command=_next_command(decision, evidence, regimes),
    )


def exit_code(decision: Decision) -> int:
    """0 completed, 1 *revise*, 2 when faults of audit, contract or environment forbid a decision."""
    if decision.decision is None:
        return 2
    return 1 if decision.decision == REVISE else 0


def _effect(finding: Finding) -> str:
    return reasons()[finding.code].effect


def _rank(finding: Finding) -> int:
    return EFFECTS.index(_effect(finding))


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
    for effect, decision in (("hold", AWAIT), ("decline", BASELINE), ("await", AWAIT), ("keep", KEEP)):
        if effect in effects:
            return decision
    return AWAIT


def _overall(general: list[Finding], regimes: list[Regime]) -> str | None:
    """Of all regimes together: what holds of every one of them, else what is still awaited."""
    whole = _strongest([each for each in general if _effect(each) in ("forbid", "revise")])
    found = {each.decision for each in regimes}
    if whole is None or REVISE in (whole, *found):
        return whole if whole is None else REVISE
    return found.pop() if len(found) == 1 else AWAIT


def _summary(decision: str | None, findings: list[Finding], evidence: Evidence, regimes: list[Regime]) -> str:
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
    if evidence.receipts:
        return f"Correct in {agreeing} of {judged} judged cells. {table_text(regimes)}."
    targets = ", ".join(declared_targets(evidence)) or "no target"
    return (
        f"Correct in {agreeing} of {judged} judged cells and not ruled out; nothing is known about its worth, since nothing "
        f"was run on {targets}."
    )


def _on_targets(evidence: Evidence, general: list[Finding], targets: Targets) -> list[Regime]:
    """One a target, dtype and mode. Findings about cells of another mode do not count."""
    by_mode: dict[str, set[str]] = {}
    for cell in evidence.cells:
        by_mode.setdefault(mode_text(cell.mode), set()).add(cell.id)
    known = {each.id for each in evidence.cells}
    found = []
    for regime in targets.regimes:
        ids = by_mode.get(mode_text(regime.mode), set())
        here = [each for each in general if not (known & set(each.records)) or ids & set(each.records)]
        here = [each for each in here if is_about(each, regime.target, regime.dtype)]
        here += regime.findings
        codes = list(dict.fromkeys(each.code for each in sorted(here, key=_rank) if _effect(each) != "note"))
        found.append(
            Regime(
                name=regime.name,
                decision=_strongest(here),
                codes=codes,
                target=regime.target,
                dtype=regime.dtype,
                judged_by=regime.judged_by,
                frequency=evidence.frozen.audit.frequencies.get(regime_text(regime.dtype, regime.mode)),
            )
        )
    return found


def _regimes(evidence: Evidence, findings: list[Finding]) -> list[Regime]:
    """One a mode; a finding that names cells of one mode only counts there."""
    by_mode: dict[str, list[Cell]] = {}
    for cell in evidence.cells:
        by_mode.setdefault(mode_text(cell.mode), []).append(cell)
    known = {each.id for each in evidence.cells}
    regimes = []
    for name, cells in sorted(by_mode.items()):
        ids = {each.id for each in cells}
        here = [each for each in findings if not (known & set(each.records)) or ids & set(each.records)]
        codes = list(dict.fromkeys(each.code for each in here if _effect(each) != "note"))
        regimes.append(Regime(name=name, decision=_strongest(here), codes=codes))
    return regimes


def _levels(evidence: Evidence, targets: Targets) -> dict[str, str]:
    kernels = {kernel.digest for each in evidence.programs if each.side == "candidate" for kernel in each.kernels}
    engines = Counter(each.engine for each in evidence.cells if each.output_digest is not None)
    ran = ", ".join(f"{count} cells in the {engine} interpreter" for engine, count in sorted(_named(engines).items()))
    programs = sum(each.side == "candidate" for each in evidence.programs)
    return {
        "traced": f"{programs} programs, {len(kernels)} distinct kernels",
        "interpreted": ran or "nothing",
        "compiled": compiled_text(evidence),
        "executed": _ran_text(targets, PROGRAM),
        "end-to-end": _ran_text(targets, STEP),
    }


def _ran_text(targets: Targets, part: str) -> str:
    """What the receipts of a part hold, by device."""
    timed = Counter(each.device.kind for each in targets.valid if each.part == part and each.verdict is not None)
    return "; ".join(f"{count} receipts of {kind}" for kind, count in sorted(timed.items())) or "nothing"


def _level(evidence: Evidence, targets: Targets) -> str:
    """The highest level at which something was observed."""
    for part, level in ((STEP, "end-to-end"), (PROGRAM, "executed")):
        if any(each.part == part and each.verdict is not None for each in targets.valid):
            return level
    if any(each.accepted and each.side == "candidate" for each in evidence.compiled):
        return "compiled"
    return "interpreted" if any(each.output_digest for each in evidence.cells) else "traced"


def _named(engines: Counter[str]) -> dict[str, int]:
    return {name.removesuffix("-interpreter").replace("tpu", "TPU"): count for name, count in engines.items()}


def _next_command(decision: str | None, evidence: Evidence, regimes: list[Regime]) -> str:
    name = evidence.frozen.reference
    if decision == REVISE and any(_effect(each) == "revise" for each in step_findings(evidence)):
        return f"correct the step, or the kernel in it, then: kernel-audit run {name}"
    if decision == REVISE:
        return f"correct the kernel, then: kernel-audit check {name}"
    if decision is None:
        return "kernel-audit explain CODE for each finding above"
    if decision == BASELINE:
        return f"kernel-audit profile {name} on another platform, or look for the region that matters"
    targets = declared_targets(evidence)
    if decision in (KEEP, BASELINE):
        return "nothing is open"
    open_ = [each.target for each in regimes if each.target and each.decision == AWAIT]
    targets = open_ or declared_targets(evidence)
    if not targets:
        return "state targets= in the audit"
    kind = targets[0].partition(":")[0]
    return f"on a {targets[0]} device: kernel-audit measure {name} --target {kind}"
