"""Rules about what ran on a target: one regime for each declared target, dtype and mode, each with its own findings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kernel_audit.contract import Audit
from kernel_audit.contract.regimes import regime_text
from kernel_audit.decision.finding import finding
from kernel_audit.decision.reasons import reasons
from kernel_audit.decision.receipts import Counted, counted, left_out
from kernel_audit.decision.rules import declared_targets
from kernel_audit.decision.worth import (
    MEASURED,
    MET,
    SHORT,
    TIMES,
    best_by_floor,
    break_even_steps,
    gain,
    limit,
    loss,
    shown,
    sound,
)
from kernel_audit.evidence import Evidence
from kernel_audit.records import (
    ABLATION,
    FASTER,
    PROGRAM,
    REFUSED,
    SLOWER,
    STEP,
    Finding,
    Receipt,
    dtype_text,
    receipt_name,
)


@dataclass
class OnTarget:
    """One regime: `cells_mode` is its mode as text, `judged_by` what carried its decision."""

    target: str
    dtype: str
    mode: dict[str, Any]
    findings: list[Finding] = field(default_factory=list)
    judged_by: str = ""

    @property
    def name(self) -> str:
        return f"{self.target}, {regime_text(self.dtype, self.mode)}"


@dataclass(frozen=True)
class Targets:
    """What the receipts say: regimes in order, findings about receipts that do not count, and those that do."""

    regimes: list[OnTarget]
    ignored: list[Finding]
    valid: list[Receipt]


def on_targets(evidence: Evidence) -> Targets:
    """Every regime that the audit declares, with what its receipts show. Without any receipt: none."""
    if not evidence.receipts:
        return Targets([], [], [])
    audit, receipts, missing = evidence.frozen.audit, counted(evidence), left_out(evidence)
    modes = audit.mode_choices()
    regimes = [
        OnTarget(target, dtype_text(binding), mode)
        for target, mode, binding in itertools.product(declared_targets(evidence), modes, audit.dtype_bindings())
    ]
    for each in regimes:
        if each.target in missing:
            each.findings.append(finding("receipts-left-out", missing[each.target], scope=each.target))
        each.findings += _regime(audit, each, receipts)
    return Targets(regimes, receipts.ignored, receipts.valid)


def _regime(audit: Audit, regime: OnTarget, receipts: Counted) -> list[Finding]:
    program, step = (receipts.of(regime.target, regime.dtype, regime.mode, part) for part in (PROGRAM, STEP))
    scope = regime.name
    found = [each for receipt in (*program, *step) for each in _failures(receipt, scope)]
    found += [each for receipt in (*program, *step) for each in _unmeasured(audit, receipt, scope)]
    timed_alone, timed_step = _timed(program), _timed(step)
    if not timed_alone:
        found.append(finding("no-target-receipt", f"nothing was run on {scope} that counts", scope=scope))
    if not timed_step:
        named = f"no receipt of {audit.worth.step}" if audit.worth.step else "the audit names no step"
        found.append(finding("no-step-receipt", f"{named} with the kernel in place", scope=scope))
    for receipt in (*timed_alone, *timed_step):
        found += _session(receipt, scope)
    if timed_step:
        regime.judged_by = f"{audit.worth.objective} in {audit.worth.step}"
        found += [each for receipt in timed_step for each in _worth(audit, receipt, scope)]
        found += _slower_alone(timed_alone, timed_step, scope)
    elif timed_alone and audit.worth.step is None:  # a step that is named has the last word, measured or not
        regime.judged_by = f"{audit.worth.objective} of the kernel alone"
        found += [each for receipt in timed_alone for each in _alone(audit, receipt, scope)]
    judged = timed_step if audit.worth.step else timed_alone
    found += [each for receipt in judged for each in _margins(audit, receipt, scope)]
    if timed_step and not timed_alone:  # won or lost in the step, and never run alone: why not may change what it means
        found = [each for each in found if reasons()[each.code].effect not in ("keep", "decline")]
    return found


def _timed(receipts: list[Receipt]) -> list[Receipt]:
    return [each for each in receipts if each.verdict is not None]


def _failures(receipt: Receipt, scope: str) -> Iterator[Finding]:
    """Whose fault a failure is: the candidate's only where some baseline ran. A twin informs, and its failure does, too."""
    failed = {(each.role, each.name) for each in receipt.failures}
    lost = [each for each in receipt.baselines if ("baseline", each) in failed]
    all_lost = len(lost) == len(receipt.baselines)
    name = [receipt_name(receipt)]
    for each in (one for one in receipt.failures if one.role != ABLATION):
        text = f"{receipt.part}, {each.stage}: {each.name or each.role}: {each.what}: {each.got}"[:400]
        if each.role == "candidate" and not all_lost and each.stage != "time":
            yield finding("fails-on-target", text, name, scope)
        elif each.role == "baseline":
            yield finding("baseline-fails-on-target", text, name, scope)
        else:
            yield finding("target-failed", text, name, scope)
    if all_lost and receipt.baselines:
        yield finding("no-baseline-on-target", f"{receipt.part}: none of {', '.join(lost)} runs there", name, scope)


def _unmeasured(audit: Audit, receipt: Receipt, scope: str) -> Iterator[Finding]:
    """Configurations and baselines of the audit that were not tried."""
    left = [each for each in audit.configurations_for(receipt.target) if each not in receipt.candidates]
    names = [each.name for each in audit.baselines if each.name not in receipt.baselines]
    for what, missing in (("configurations", left), ("baselines", names)):
        if missing:
            text = f"{receipt.part}: {len(missing)} {what} were not tried, first {missing[0]}"
            yield finding("not-all-measured", text, [receipt_name(receipt)], scope)


def _session(receipt: Receipt, scope: str) -> Iterator[Finding]:
    """What forbids to use a session's times, and what a reader must know of it."""
    verdict, name = receipt.verdict, [receipt_name(receipt)]
    assert verdict is not None
    if verdict.verdict == REFUSED:
        # Where results of both are wrong, what judged them may be: that accuses nobody.
        both = {"timed-output-differs", "timed-baseline-output-differs"} <= set(verdict.reasons)
        accused = {} if both else {"timed-output-differs": "timed-output-differs"}
        codes = {**accused, "below-floor": "faster-than-possible"}
        for reason in verdict.reasons:
            yield finding(codes.get(reason, "session-refused"), f"{receipt.part}: {reason}", name, scope)
    elif not sound(receipt):
        told = ", ".join(verdict.reasons)
        yield finding("session-cannot-tell", f"{receipt.part}: {told}", name, scope)
    if verdict.findings:
        yield finding("session-doubts", f"{receipt.part}: {', '.join(verdict.findings)}", name, scope)


def _worth(audit: Audit, receipt: Receipt, scope: str) -> Iterator[Finding]:
    """The primary objective in the complete step."""
    worth, name = audit.worth, [receipt_name(receipt)]
    if worth.objective not in MEASURED:
        yield finding("objective-not-measured", f"{worth.objective} is not measured in this version", name, scope)
        return
    if not sound(receipt):
        return  # told already
    seen = shown(worth.objective, receipt)
    says = f"{worth.objective}: ratio {seen.text if seen else 'unknown'}, asked for {limit(worth):.3f} or less"
    outcome = gain(worth, seen)
    if outcome == SHORT:
        yield finding("less-than-worth-in-step", says, name, scope)
        return
    if outcome != MET:
        needed = receipt.verdict.pairs_needed if receipt.verdict is not None else None
        more = f"; {needed} pairs would find the session's margin" if needed else ""
        yield finding("worth-undecided", says + more, name, scope)
        return
    steps = break_even_steps(receipt) if worth.objective in TIMES else None
    if worth.break_even is not None and steps is None and worth.objective in TIMES:
        yield finding("worth-undecided", f"{says}; when the compilation is earned back is not known", name, scope)
    elif worth.break_even is not None and steps is not None and steps > worth.break_even:
        text = f"the longer compilation is earned back after {steps:.0f} steps, allowed are {worth.break_even}"
        yield finding("break-even-too-late", text, name, scope)
    else:
        earned = f"; its compilation is earned back after {steps:.0f} steps" if steps is not None else ""
        yield finding("worth-met", says + earned, name, scope)


def _alone(audit: Audit, receipt: Receipt, scope: str) -> Iterator[Finding]:
    """What the kernel alone can rule out where no step is named: a step cannot gain more than the kernel that it holds.

    Nothing where the calls themselves took the time: inside a step nobody calls.
    """
    worth, name = audit.worth, [receipt_name(receipt)]
    if worth.objective not in TIMES or not sound(receipt) or _of_calls(receipt):
        return
    seen = shown(worth.objective, receipt)
    if gain(worth, seen) == SHORT and seen is not None:
        text = f"alone: ratio {seen.text}, asked for {limit(worth):.3f} or less of a step that holds more"
        yield finding("less-than-worth-alone", text, name, scope)
    best = best_by_floor(receipt)
    if best is not None and best > limit(worth):
        text = f"at the speed of a measured copy the ratio would be {best:.3f}, asked for {limit(worth):.3f} or less"
        yield finding("floor-leaves-too-little", text, name, scope)


def _of_calls(receipt: Receipt) -> bool:
    """Whether an empty program takes so long at the same boundary that the times are those of calls."""
    return receipt.verdict is not None and "dispatch-dominated" in receipt.verdict.findings


def _margins(audit: Audit, receipt: Receipt, scope: str) -> Iterator[Finding]:
    """Margins that must not be lost."""
    for objective, margin in sorted(audit.worth.not_to_lose.items()):
        seen = shown(objective, receipt)
        if objective in TIMES and receipt.part == PROGRAM and _of_calls(receipt):
            seen = None
        outcome = loss(margin, seen)
        text = f"{objective}: ratio {seen.text if seen else 'unknown'}, allowed {1 + margin:.3f}"
        if outcome == SHORT:
            yield finding("margin-lost", text, [receipt_name(receipt)], scope)
        elif outcome != MET:
            yield finding("margin-undecided", text, [receipt_name(receipt)], scope)


def _slower_alone(program: list[Receipt], step: list[Receipt], scope: str) -> Iterator[Finding]:
    alone = {each.verdict.verdict for each in program if each.verdict is not None}
    whole = {each.verdict.verdict for each in step if each.verdict is not None}
    if SLOWER in alone and whole == {FASTER}:
        names = [receipt_name(each) for each in (*program, *step)]
        yield finding("slower-alone", "slower than its baseline alone, and faster in the complete step", names, scope)
