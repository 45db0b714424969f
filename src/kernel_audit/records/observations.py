"""What was observed: cells, controls, refusals, and the findings that rest on them."""

from __future__ import annotations

from typing import Any

from kernel_audit.records.canonical import Record

OUTCOMES = (
    "agrees",
    "differs",
    "recorded",  # run and compared, but the contract promises nothing here
    "refused",  # the candidate raised on an input that its contract accepts
    "raised",  # the program raised while it ran
    "crashed",
    "timed-out",
    "out-of-memory",
    "forged-output",
    "tampered",
    "import-failed",  # the candidate's module raised while it was imported
    "unjudged",  # run, but the oracle gave no expectation
    "not-captured",  # the program could not be exported for this engine; `note` says why
)


class Difference(Record, kw_only=True):
    """One position at which a result is outside its agreement; values as shortest round-trip text."""

    leaf: int
    position: list[int]
    actual: str
    expected: str


class Cell(Record, kw_only=True):
    """One point of the matrix, run at one engine. `outcome` is one of OUTCOMES; `code` says what differs.

    Holds no time: an interpreted run is never a speed.

    `kernel_error_max`: largest |candidate - represented-input oracle| over finite elements, None when nothing was
    compared. `representation_gap_max`: largest |represented-input oracle - original-data oracle|; `gap_input_max` is the
    part before the final cast, `gap_output_max` the final cast alone. All in the unit of the result.
    """

    schema: str = "kernel-audit/cell/1"
    id: str
    fixture: str
    fixture_digest: str
    family: str
    dims: dict[str, int]
    shape: list[int]
    dtype: str
    configuration: dict[str, Any]
    mode: dict[str, Any]
    level: str = "interpreted"
    engine: str
    judged: bool
    outcome: str
    code: str = ""
    program: str
    output_digest: str | None = None
    kernel_error_max: float | None = None
    kernel_error_ulps: float | None = None
    differing: int | None = None
    differing_first: list[Difference] = []
    nonfinite_mismatches: int | None = None
    representation_gap_max: float | None = None
    gap_input_max: float | None = None
    gap_output_max: float | None = None
    repeatable: bool | None = None
    inputs_unchanged: bool | None = None
    permutation_holds: bool | None = None
    races: bool | None = None
    poison: str | None = None
    baseline_outcome: str | None = None
    actual_backend: str | None = None
    simulated_device: str | None = None
    provenance: str = "emulation"
    note: str = ""


class Control(Record, kw_only=True):
    """A known-bad or known-good stand-in put through the comparison of the cells.

    `expected` and `outcome` are "accepted" or "rejected"; outcome "not-applicable" says in `reason` why the control cannot
    tell anything here.
    """

    schema: str = "kernel-audit/control/1"
    name: str
    fixture: str
    dtype: str
    mode: dict[str, Any]
    expected: str
    outcome: str
    reason: str = ""
    kernel_error_max: float | None = None
    differing: int | None = None


class RefusalCheck(Record, kw_only=True):
    """One input that the contract says is rejected before launch, tried on the candidate.

    `outcome` is "refused", "accepted", "wrong-exception", "value-not-named", or a worker outcome such as "crashed". The check
    "door-opened" traces the candidate's target mode as if there were a target: "refused" where its kernels would be compiled,
    else "simulates", "raises-on-target", "no-kernel" or "kernel-unused". "door-unplaced" tries it on operands that do not lie
    on a target; "door-closed" calls the candidate without it: "runs", or "does-not-run".
    """

    schema: str = "kernel-audit/refusal/1"
    name: str
    promised: str
    outcome: str
    raised: str = ""
    message: str = ""


class Finding(Record, kw_only=True):
    """One rule's outcome.

    `subject` is "kernel", "contract", "audit" or "environment"; `scope` says for what it holds; `records` name what it
    rests on (cell ids, control names, program keys).
    """

    code: str
    subject: str
    text: str
    scope: str = "any target"
    records: list[str] = []
