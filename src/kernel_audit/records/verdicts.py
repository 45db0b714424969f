"""What is decided, and on what: the records that the judging half writes and reads."""

from __future__ import annotations

from typing import Any

from kernel_audit.records.canonical import Record
from kernel_audit.records.observations import Finding

KEEP, REVISE, BASELINE, AWAIT = "keep", "revise", "use-the-baseline", "await-target-evidence"
DECISIONS = (KEEP, REVISE, BASELINE, AWAIT)
LEVELS = ("traced", "interpreted", "compiled", "executed", "end-to-end")


class Environment(Record, kw_only=True):
    """Where the observations were made. No host, user or absolute path.

    `not_run` says in sentences what could not be done here. `isolation` says what held for the workers.
    """

    schema: str = "kernel-audit/environment/1"
    tool_version: str
    python: str
    platform: str
    versions: dict[str, str]
    devices: list[str]
    flags: dict[str, str]
    command: list[str]
    isolation: dict[str, Any]
    oracle: str
    not_run: list[str]


class Criterion(Record, kw_only=True):
    """One of the five criteria of the review: "accept", "revise" or "unresolved", with the codes it rests on."""

    name: str
    verdict: str
    text: str
    codes: list[str] = []


class Regime(Record, kw_only=True):
    """A mode with its own decision; with receipts, a target, a dtype and a mode. `judged_by` says what carried it;
    `frequency` is the share of calls that the audit states for it."""

    name: str
    decision: str | None
    codes: list[str]
    target: str = ""
    dtype: str = ""
    judged_by: str = ""
    frequency: float | None = None


class Decision(Record, kw_only=True):
    """The decision and its reasons. `decision` is None where faults of the audit or the environment forbid one.

    `counts` are cells by outcome; `level` is the strongest level with evidence, `levels` says what each level holds.
    `next_command` is what would settle what is open.
    """

    schema: str = "kernel-audit/decision/1"
    audit: str
    decision: str | None
    summary: str
    findings: list[Finding]
    regimes: list[Regime]
    review: list[Criterion]
    level: str
    levels: dict[str, str]
    counts: dict[str, int]
    next_command: str
