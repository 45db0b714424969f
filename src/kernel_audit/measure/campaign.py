"""All that is measured on a borrowed device in a few minutes: what, in which order, and what no longer fits into the time.

Imports what a bare machine has: JAX in its jobs, NumPy, ml_dtypes, msgspec and flatbuffers. Nothing is judged here; the
receipts go to `kernel-audit decide` elsewhere.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_audit.contract import Audit
from kernel_audit.contract.places import BUILT_IN
from kernel_audit.errors import AuditError
from kernel_audit.measure.comparison import Comparison, comparisons_of, is_large
from kernel_audit.measure.measuring import Amount, Measuring
from kernel_audit.records import Ceiling, Receipt, digest_file, encode, receipt_name

BUDGET_S = 480.0
PROCESSES, MOST_PAIRS = 8, 600
# Seconds that the plan counts with: guesses that no device has confirmed. What is left of the budget is looked at before every
# process, so that a wrong guess costs the last part and not the budget.
START_S, PREPARE_S, CEILINGS_S = 5.5, 12.0, 15.0
SESSION_S, LARGE_SESSION_S = 1.5, 4.0  # of a comparison in one process
CHECK_S, LARGE_CHECK_S = 8.0, 25.0
PILOT_PROCESSES = 2


@dataclass(frozen=True)
class Part:
    """An audit in some of its dtypes: measured as a whole or not at all."""

    audit: str
    dtypes: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"{self.audit} ({', '.join(self.dtypes)})"


# What the project most wants to know comes first.
PARTS = {
    "gpu": (
        Part("regression", ("float32",)),
        Part("bias-relu-gpu", ("float32",)),
        Part("axpy-gpu", ("float32",)),
        Part("regression", ("bfloat16",)),
        Part("bias-relu-gpu", ("bfloat16",)),
        Part("axpy-gpu", ("bfloat16",)),
    ),
    "tpu": (
        Part("regression", ("float32",)),
        Part("bias-relu", ("float32",)),
        Part("axpy", ("float32",)),
        Part("regression", ("bfloat16",)),
        Part("bias-relu", ("bfloat16",)),
        Part("axpy", ("bfloat16",)),
    ),
}


@dataclass(frozen=True)
class Planned:
    """A part with the seconds that it is planned to take; `fits` says whether it is within the budget."""

    part: Part
    about_s: float
    comparisons: list[str]
    fits: bool


@dataclass
class Campaign:
    """`device` and `host` are engines (see `Measuring`); `target` is "tpu" or "gpu"."""

    target: str
    device: Any
    host: Any
    work: Path
    out: Path
    budget_s: float = BUDGET_S
    parts: Sequence[Part] = ()
    say: Callable[[str], None] = lambda text: None
    now: Callable[[], float] = time.monotonic
    ceilings: list[Ceiling] | None = None
    notes: list[str] = field(default_factory=list)

    def run(self) -> list[Receipt]:
        """The receipts of everything that fits, written as they come. Raises TargetError before anything where there is no such
        target."""
        started = self.now()
        receipts: list[Receipt] = []
        for number, part in enumerate(self.parts or PARTS[self.target]):
            about_s = seconds_of(part, self.target, first=number == 0)
            left_s = self.budget_s - (self.now() - started)
            if about_s > left_s:
                self.notes.append(f"{part.text}: left out, about {about_s:.0f} s of {left_s:.0f} s that were left")
                self.say(self.notes[-1])
                continue
            self.say(f"{part.text}: about {about_s:.0f} s, {left_s:.0f} s are left")
            receipts += self._measured(part, time.monotonic() + left_s)
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "summary.txt").write_text("\n".join([*summary(receipts), *self.notes]) + "\n", "utf-8")
        return receipts

    def _measured(self, part: Part, until_s: float) -> list[Receipt]:
        audit = audit_of(part.audit)
        folder = self.work / f"{part.audit}-{'-'.join(part.dtypes)}"
        measuring = Measuring(
            audit,
            self.target,
            self.device,
            self.host,
            folder,
            [Path.cwd()],
            sources_of(audit),
            amount=Amount(processes=PROCESSES, most_pairs=MOST_PAIRS),
            progress=lambda what, done, total: self.say(f"  {what}" + (f" {done}/{total}" if total else "")),
            ceilings=self.ceilings,
            until_s=until_s,
        )
        try:
            receipts = measuring.measure(only=lambda each: each.dtype in part.dtypes)
        except AuditError as error:
            if self.ceilings is None and measuring.ceilings is None:
                raise  # there is no such target, or nothing works on it
            self.notes.append(f"{part.text}: {error.what}: {error.got}")
            self.say(self.notes[-1])
            return []
        self.ceilings = measuring.ceilings
        place = self.out / receipts[0].target.replace(":", "-") if receipts else self.out
        place.mkdir(parents=True, exist_ok=True)
        for each in receipts:
            (place / f"{receipt_name(each)}.json").write_bytes(encode(each))
        return receipts


def plan(target: str, budget_s: float = BUDGET_S, parts: Sequence[Part] = ()) -> list[Planned]:
    """What would be measured on a target, in order, and what does not fit. Reads the audits and nothing else."""
    found, spent_s = [], 0.0
    for number, part in enumerate(parts or PARTS[target]):
        about_s = seconds_of(part, target, first=number == 0)
        fits = spent_s + about_s <= budget_s
        spent_s += about_s if fits else 0.0
        found.append(Planned(part, about_s, [each.text for each in comparisons(part, target)], fits))
    return found


def comparisons(part: Part, target: str) -> list[Comparison]:
    """The comparisons of a part."""
    return [each for each in comparisons_of(audit_of(part.audit), target) if each.dtype in part.dtypes]


def seconds_of(part: Part, target: str, *, first: bool) -> float:
    """Seconds that a part is planned to take; the ceilings are counted with the first."""
    audit, total = audit_of(part.audit), PREPARE_S + (CEILINGS_S + START_S if first else START_S)
    total += (PROCESSES + PILOT_PROCESSES * (2 if audit.ablations else 1)) * START_S
    for each in comparisons(part, target):
        large = is_large(audit, each)
        pilots = max(1, len(each.configurations) + len(audit.baselines) - 1)
        one_s = LARGE_SESSION_S if large else SESSION_S
        check_s, twins = (LARGE_CHECK_S if large else CHECK_S), len(audit.ablations)
        total += (PROCESSES + PILOT_PROCESSES * (pilots + twins)) * one_s + check_s
        total += START_S + check_s if twins else 0.0
    return total


def audit_of(name: str) -> Audit:
    """A built-in audit. Its module loads no JAX."""
    return importlib.import_module(BUILT_IN[name]).BUILT_IN[name]


def sources_of(audit: Audit) -> dict[str, str]:
    """Digests of the modules that a built-in audit names, by the labels that `kernel-audit run` gives them."""
    stated = [*audit.baselines, *audit.ablations]
    functions = [audit.candidate, *(each.function for each in stated), audit.oracle.function]
    found: dict[str, str] = {}
    for module in dict.fromkeys(each.module for each in functions if each is not None and each.module):
        spec = importlib.util.find_spec(module)
        if spec is not None and spec.origin is not None:
            found[f"{module.replace('.', '/')}.py"] = digest_file(Path(spec.origin))
    return dict(sorted(found.items()))


def summary(receipts: Sequence[Receipt]) -> list[str]:
    """A line for each receipt: the ratio, the ratio to the first baseline by its pilot, and the share of the measured copy."""
    lines = []
    for each in receipts:
        if each.verdict is None or each.verdict.ratio is None:
            why = each.failures[0].what if each.failures else ", ".join(each.verdict.reasons) if each.verdict else ""
            lines.append(f"{each.audit} {each.part} {each.dtype}: no times: {why}")
            continue
        chosen = {choice.role: choice for choice in each.choices}
        own = next((one.ratio for one in chosen["candidate"].pilots if one.name == chosen["candidate"].chosen), None)
        first = f", {own:.3f} of {chosen['candidate'].yardstick} (pilot)" if own is not None else ""
        share = next((one.share_of_copy for one in each.achieved if one.role == "candidate"), None)
        ratio = each.verdict.ratio
        high = f"{ratio.high:.3f}" if ratio.high is not None else "unbounded"
        lines.append(
            f"{each.audit} {each.part} {each.dtype}: {each.verdict.verdict}, {ratio.ratio:.3f} [{ratio.low:.3f}, {high}] of "
            f"{chosen['baseline'].chosen}{first}" + (f", {share:.0%} of the measured copy" if share is not None else "")
        )
    return lines


__all__ = ["BUDGET_S", "PARTS", "Campaign", "Part", "Planned", "plan", "summary"]
