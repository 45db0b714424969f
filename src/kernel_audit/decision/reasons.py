"""Every reason code: whose fault it is, what it does to the decision, which criterion it belongs to, what it means."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

# What a finding does: "revise" breaks a promise; "forbid" leaves no ground for any decision; "decline" shows on the target that
# there is too little to gain; "await" says what is missing; "note" informs.
EFFECTS = ("revise", "forbid", "decline", "await", "note")


@dataclass(frozen=True)
class Reason:
    """A reason code, explained. `subject` is whose it is: "kernel", "contract", "audit" or "environment"."""

    code: str
    subject: str
    effect: str
    criterion: str
    means: str
    resolve: str


@cache
def reasons() -> dict[str, Reason]:
    """All reason codes by code, from reasons.toml."""
    text = resources.files("kernel_audit.decision").joinpath("reasons.toml").read_text("utf-8")
    return {code: Reason(code=code, **entry) for code, entry in sorted(tomllib.loads(text).items())}
