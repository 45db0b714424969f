"""Ablations: what the candidate loses with one optimisation off, kernel alone beside complete step. Pilots, and no verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kernel_audit.decision import counted
from kernel_audit.evidence import Evidence
from kernel_audit.records import ABLATION, PROGRAM, STEP, PilotRatio, Receipt, encode

SCOPE = (
    "Twins of the candidate with one optimisation off. Pilot samples of two processes against the first baseline, no verdict: "
    "they inform and decide nothing"
)
ITSELF = "the candidate itself"


@dataclass(frozen=True)
class AblationRow:
    """A twin, or the candidate beside it, in one regime: pilot ratios to the first baseline."""

    regime: str
    twin: str
    alone: str
    in_step: str


def ablation_rows(evidence: Evidence) -> list[AblationRow]:
    """The candidate, then every twin that the audit names, for each regime with receipts that count."""
    names = [each.name for each in evidence.frozen.audit.ablations]
    if not names or not evidence.receipts:
        return []
    regimes: dict[tuple[str, str, bytes, str], list[Receipt]] = {}
    for each in counted(evidence).valid:
        regimes.setdefault((each.target, each.dtype, encode(each.mode), each.run), []).append(each)
    return [
        AblationRow(_regime(receipts[0]), name, _cell(receipts, PROGRAM, name), _cell(receipts, STEP, name))
        for receipts in regimes.values()
        for name in (ITSELF, *names)
    ]


def ablation_texts(evidence: Evidence) -> list[str]:
    """One text each, after what they are worth."""
    rows = [
        f"{each.twin}, {each.regime}: alone {each.alone}; in step {each.in_step}" for each in ablation_rows(evidence)
    ]
    return [f"{SCOPE}.", *rows] if rows else []


def _regime(receipt: Receipt) -> str:
    modes = [f"{key}={value}" for key, value in sorted(receipt.mode.items())]
    return ", ".join([receipt.target, receipt.dtype, *modes])


def _cell(receipts: Iterable[Receipt], part: str, name: str) -> str:
    receipt = next((each for each in receipts if each.part == part), None)
    if receipt is None:
        return "not measured"
    own, twins = receipt.ablations[:1], receipt.ablations[1:]
    if name == ITSELF:
        return _ratio(own[0], "candidate") if own else "no twin was timed"
    if (found := next((each for each in twins if _is_of(each.name, name)), None)) is not None:
        return _ratio(found, name)
    failed = (each for each in receipt.failures if each.role == ABLATION and _is_of(each.name, name))
    return next((f"left out: {each.what}" for each in failed), "not timed")


def _is_of(program: str, name: str) -> bool:
    """Whether a program is this twin: its name, then perhaps its configuration."""
    return program.partition(" ")[0] == name


def _ratio(pilot: PilotRatio, name: str) -> str:
    """ "0.812 at block=8x128"."""
    told = f"{pilot.ratio:.3f}" if pilot.ratio is not None else "no samples"
    configuration = pilot.name.removeprefix(name).strip()
    return f"{told} at {configuration}" if configuration else told
