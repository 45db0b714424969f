"""The complete step beside the conditional estimate from the kernel alone, as rows. They inform; no decision rests on them.

Only receipts that count are compared, and only those of the same target, device, dtype, mode and sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kernel_audit.decision import counted, sound
from kernel_audit.evidence import Evidence
from kernel_audit.records import PROGRAM, STEP, Ratio, Receipt, TimingVerdict, encode
from kernel_audit.report.phrases import choice_text
from kernel_audit.statistics import AGREES, LESS, MORE, RatioInterval, as_interval, beside_estimate, step_estimate

CONDITION = "if the kernel alone took the same time inside the step"
ABOUT = (
    "The estimate of the step is (1 - p) + p r: p is the share of the baseline's step that the baseline alone takes, "
    f"{CONDITION}, and r the ratio of the kernel alone. Its interval is that of r; p counts as a point. "
    "No decision depends on it."
)
NOT_COMPARABLE = "not comparable"
_WHY = "inference: fusion, layout or memory are possible reasons"
SAYS = {
    AGREES: "agrees",
    MORE: f"the step gained more than the kernel alone explains ({_WHY})",
    LESS: f"the step gained less than the kernel alone explains ({_WHY})",
}


@dataclass(frozen=True)
class StepRow:
    """One step beside its estimate, in words. `share` and `estimate` are empty where nothing can be compared."""

    what: str
    device: str
    share: str
    estimate: str
    observed: str
    says: str


def step_rows_of(evidence: Evidence) -> list[StepRow]:
    """A row for each step that counts and each kernel alone that counts beside it."""
    valid = counted(evidence).valid if evidence.receipts else []
    return [_row(alone, step) for step in valid if step.part == STEP for alone in _beside(step, valid)]


def step_row_texts(evidence: Evidence) -> list[str]:
    """One text each."""
    return [
        f"step beside its estimate, {each.what}, {each.device}: "
        + (f"estimated {each.estimate}, with {each.share}; " if each.estimate else "")
        + f"observed {each.observed}: {each.says}"
        for each in step_rows_of(evidence)
    ]


def _beside(step: Receipt, valid: list[Receipt]) -> Iterator[Receipt]:
    """The kernel alone at the same place: of the same measurement where there is one, else of every other."""
    same = [each for each in valid if each.part == PROGRAM and _place(each) == _place(step)]
    own = [each for each in same if each.run == step.run]
    yield from own or same


def _place(receipt: Receipt) -> tuple[object, ...]:
    device = (receipt.device.kind, receipt.device.count)
    return (receipt.target, device, receipt.dtype, encode(receipt.mode), encode(receipt.dims))


def _row(alone: Receipt, step: Receipt) -> StepRow:
    share = estimate = ""
    says = _unlike(alone, step)
    if not says:
        assert alone.verdict is not None and step.verdict is not None
        assert alone.verdict.ratio is not None and step.verdict.ratio is not None
        alone_s, step_s = _baseline_s(alone.verdict), _baseline_s(step.verdict)
        found = step_estimate(_interval(alone.verdict.ratio), alone_s, step_s)
        if found is None:
            says = f"{NOT_COMPARABLE}: the baseline alone takes {alone_s:.3g} s, in the whole step {step_s:.3g} s"
        else:
            share = f"p = {found.share:.1%} {CONDITION}"
            estimate = _text(found.ratio)
            says = SAYS[beside_estimate(_interval(step.verdict.ratio), found.ratio)]
            says += "; measured apart" if alone.run != step.run else ""
    ratio = step.verdict.ratio if step.verdict is not None else None
    return StepRow(
        what=", ".join([step.dtype, *([choice_text(step.mode)] if step.mode else [])]),
        device=f"{step.target} ({step.device.kind})",
        share=share,
        estimate=estimate,
        observed=_text(_interval(ratio)) if ratio is not None else "none",
        says=says,
    )


def _unlike(alone: Receipt, step: Receipt) -> str:
    """Why nothing can be compared; empty where both sessions can tell, of the same programs."""
    for name, each in (("the kernel alone", alone), ("the step", step)):
        if not sound(each):
            return f"{NOT_COMPARABLE}: the session of {name} reports no ratio that can be used"
    for role in ("candidate", "baseline"):
        ours, theirs = _chosen(alone, role), _chosen(step, role)
        if ours != theirs:
            return f"{NOT_COMPARABLE}: alone the {role} is {ours!r}, in the step {theirs!r}"
    if alone.versions != step.versions:
        return f"{NOT_COMPARABLE}: measured with other versions"
    return ""


def _chosen(receipt: Receipt, role: str) -> str:
    return next((each.name for each in receipt.programs if each.role == role), "")


def _baseline_s(verdict: TimingVerdict) -> float:
    """Its median in seconds; 0, which compares with nothing, where there is none."""
    return next((each.median_s for each in verdict.sides if each.role == "baseline"), 0.0)


def _interval(ratio: Ratio) -> RatioInterval:
    return as_interval(ratio.low, ratio.ratio, ratio.high)


def _text(ratio: RatioInterval) -> str:
    high = f"{ratio.high:.3f}" if ratio.high != float("inf") else "unbounded"
    return f"{ratio.ratio:.3f} [{ratio.low:.3f}, {high}]"
