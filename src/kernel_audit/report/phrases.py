"""The words of the report: what each decision, level and outcome means to a reader who has not seen the tool before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernel_audit.contract import Audit
from kernel_audit.records import AWAIT, BASELINE, KEEP, REVISE, Cell

# decision -> (headline, what it means)
DECISION_WORDS: dict[str | None, tuple[str, str]] = {
    KEEP: ("Keep the kernel", "It is correct, and it earns its complexity in the complete step on the named device."),
    REVISE: ("Revise the kernel", "The kernel itself breaks a promise of its contract."),
    BASELINE: ("Use the baseline", "The kernel is correct, and it gains less on the target than the audit asks for."),
    AWAIT: (
        "Await target evidence",
        "No promise is broken in anything that was observed. Whether the kernel is worth having is not known yet.",
    ),
    None: ("No decision", "A fault of the audit, its contract or the environment forbids a judgement of the kernel."),
}

LEVEL_WORDS = {
    "traced": "the program was read, not run",
    "interpreted": "run in a Pallas interpreter on a CPU: values only, never a time",
    "compiled": "accepted by the target's own compiler, not run",
    "executed": "run on the named device, across the complete boundary",
    "end-to-end": "the complete step on the named devices, kernel in place",
}

# outcome -> (word beside a count, tone). The tone is a class of the page; the word says the same without colour.
OUTCOME_WORDS = {
    "agrees": ("agree", "good"),
    "recorded": ("recorded", "calm"),
    "differs": ("differ", "bad"),
    "refused": ("refused", "bad"),
    "raised": ("raised", "bad"),
    "crashed": ("crashed", "bad"),
    "timed-out": ("timed out", "bad"),
    "out-of-memory": ("out of memory", "bad"),
    "forged-output": ("forged output", "bad"),
    "tampered": ("tampered", "bad"),
    "not-captured": ("not captured", "odd"),
}
OUTCOME_MEANINGS = {
    "agree": "the result is the oracle's, within the stated agreement",
    "recorded": "run and compared; the contract promises nothing for these values",
    "not captured": "this engine cannot run the program; the cell's note says why",
}

VERDICT_TONES = {"accept": "good", "revise": "bad", "unresolved": "odd"}


def headline(decision: str | None) -> tuple[str, str]:
    """(headline, meaning) of a decision; an unknown word stands for itself."""
    return DECISION_WORDS.get(decision, (str(decision), "A decision that this version of the report does not know."))


def outcome_word(outcome: str) -> str:
    return OUTCOME_WORDS.get(outcome, (outcome, "odd"))[0]


def outcome_tone(outcome: str) -> str:
    return OUTCOME_WORDS.get(outcome, (outcome, "odd"))[1]


def in_order(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Outcomes that occur, in the order of OUTCOME_WORDS, unknown ones last."""
    order = list(OUTCOME_WORDS)
    present = [name for name, count in counts.items() if count]
    return [(name, counts[name]) for name in sorted(present, key=lambda each: _place(order, each))]


def _place(order: list[str], name: str) -> tuple[int, str]:
    return (order.index(name) if name in order else len(order), name)


def counted(count: int, noun: str) -> str:
    """ "1 cell", "12 cells"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def choice_text(choice: Any) -> str:
    """A configuration, or a value in one, as short text: "block=8x128, buffers=2"."""
    if isinstance(choice, Mapping):
        return ", ".join(f"{name}={choice_text(choice[name])}" for name in sorted(choice)) or "default"
    if isinstance(choice, list | tuple):
        return "x".join(choice_text(each) for each in choice)
    return str(choice)


def shape_text(audit: Audit, dims: Mapping[str, int]) -> str:
    """Sizes in the order in which the audit names its dimensions: "9 x 129"."""
    names = [each.name for each in audit.dimensions if each.name in dims]
    return " \u00d7 ".join(str(dims[name]) for name in names) or "scalar"


def number(value: float | None) -> str:
    """A number for a table; a dash where nothing was measured."""
    if value is None:
        return "\u2013"
    return f"{value:.6g}"


def broken_promises(cell: Cell) -> list[str]:
    """What is wrong with a cell apart from the comparison, in words."""
    found = []
    if cell.repeatable is False:
        found.append("a second call gave another result")
    if cell.inputs_unchanged is False:
        found.append("an input was overwritten")
    if cell.permutation_holds is False:
        found.append("permuted rows did not permute the result")
    if cell.races:
        found.append("a data race was seen")
    return found


def needs_a_look(cell: Cell) -> bool:
    """Whether a cell is listed by itself: it does not agree, or something else about it is wrong."""
    return cell.outcome not in ("agrees", "recorded") or bool(broken_promises(cell))
