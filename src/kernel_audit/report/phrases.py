"""The words of the report: what each decision, level and outcome means to a reader who has not seen the tool before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernel_audit.contract import Audit
from kernel_audit.evidence import Evidence
from kernel_audit.records import AWAIT, BASELINE, KEEP, LEVELS, REVISE, Cell, Decision

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

# outcome -> (word beside the count of one, of several, tone). The tone is a class of the page; the word says the same
# without colour.
OUTCOME_WORDS = {
    "agrees": ("agrees", "agree", "good"),
    "recorded": ("recorded", "recorded", "calm"),
    "differs": ("differs", "differ", "bad"),
    "refused": ("refused", "refused", "bad"),
    "raised": ("raised", "raised", "bad"),
    "crashed": ("crashed", "crashed", "bad"),
    "timed-out": ("timed out", "timed out", "bad"),
    "out-of-memory": ("out of memory", "out of memory", "bad"),
    "forged-output": ("forged output", "forged output", "bad"),
    "tampered": ("tampered", "tampered", "bad"),
    "import-failed": ("import failed", "import failed", "bad"),
    "unjudged": ("unjudged", "unjudged", "odd"),
    "not-captured": ("not captured", "not captured", "odd"),
}
# outcome -> (word, what it means), for those that a reader may not guess
OUTCOME_MEANINGS = {
    "agrees": ("agrees", "the result is the oracle's, within the stated agreement"),
    "recorded": ("recorded", "run and compared; the contract promises nothing for these values"),
    "refused": ("refused", "the kernel raised on an input that its contract accepts"),
    "raised": ("raised", "the program raised while it ran"),
    "unjudged": ("unjudged", "run, and the oracle gave no expectation"),
    "not-captured": ("not captured", "this engine cannot run the program; the cell's note says why"),
}

NOTHING_OBSERVED = "nothing was observed at this level"
VERDICT_TONES = {"accept": "good", "revise": "bad", "unresolved": "odd"}


def headline(decision: str | None) -> tuple[str, str]:
    """(headline, meaning) of a decision; an unknown word stands for itself."""
    return DECISION_WORDS.get(decision, (str(decision), "A decision that this version of the report does not know."))


def level_text(decision: Decision, level: str) -> str:
    """What a level holds; "" where nothing was observed at it."""
    text = decision.levels.get(level, "")
    reached = LEVELS.index(decision.level) if decision.level in LEVELS else -1
    return "" if text == "nothing" or LEVELS.index(level) > reached else text


def outcome_word(outcome: str, count: int = 1) -> str:
    """The word beside a count: "1 differs", "2 differ"."""
    singular, plural, _ = OUTCOME_WORDS.get(outcome, (outcome, outcome, "odd"))
    return singular if count == 1 else plural


def outcome_tone(outcome: str) -> str:
    """ "good", "calm", "odd" or "bad"."""
    return OUTCOME_WORDS.get(outcome, (outcome, outcome, "odd"))[2]


def dtype_order(evidence: Evidence) -> dict[str, int]:
    """Place of each dtype: the order in which the audit states them, which the plan keeps."""
    return {dtype: place for place, dtype in enumerate(dict.fromkeys(_dtypes(evidence)))}


def _dtypes(evidence: Evidence) -> list[str]:
    return [each.dtype for each in evidence.frozen.plan.programs] + [each.dtype for each in evidence.cells]


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
