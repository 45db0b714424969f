"""Every reason code: whose fault it is, what it does to the decision, which criterion it belongs to, what it means."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

# What a finding does: "revise" breaks a promise; "forbid" leaves no ground for any decision; "await" says what is missing;
# "hold" forbids any claim about a target; "decline" shows that the baseline is enough, "keep" that the kernel earns its place;
# "note" informs.
EFFECTS = ("forbid", "revise", "hold", "decline", "await", "keep", "note")


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
