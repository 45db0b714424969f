"""What a timing session holds: every sample of both sides, raw, and what must be known to judge them.

A `Session` is measured or simulated and never judged by what made it: `statistics.session_verdict` recomputes every figure
from it.
"""

from __future__ import annotations

from kernel_audit.records.canonical import Record

FASTER, SLOWER, NO_DIFFERENCE, CANNOT_TELL, REFUSED = (
    "faster",
    "slower",
    "no-difference-shown",
    "cannot-tell",
    "refused",
)
TIMING_VERDICTS = (FASTER, SLOWER, NO_DIFFERENCE, CANNOT_TELL, REFUSED)

# What a session may be used for: a decision about its target; the host's part of a step; nothing but a study of the method.
CLAIMS = ("target", "host-only", "method-only")

# Why a pair does not count. It stays in the record.
VOID_REASONS = ("recompiled", "throttled", "busy-machine", "transfer")


class ClockRecord(Record, kw_only=True):
    """A clock: the step between two readings that it can tell apart, and what reading it twice costs. Seconds.

    `kind` is "host", "process-cpu", "device-trace" or "simulated".
    """

    name: str
    kind: str
    step_s: float
    overhead_s: float


class TimedSide(Record, kw_only=True):
    """One of the programs of a session. `program` is its digest, `exported` the digest of the bytes that ran.

    `floor_s`: the least time that its operands and results allow on this device; 0 where no ceiling was measured.
    """

    role: str
    name: str
    program: str
    exported: str
    floor_s: float = 0.0


class PairColumns(Record, kw_only=True):
    """Pairs in the order in which they ran, a column for each fact; seconds.

    `order` is 0 where the left side went first. `inputs` is the number of the operands that both sides were given: those from 0
    on are rotated, those below 0 were made for this pair alone. `voided` is "" or one of VOID_REASONS. The columns of the
    second clock (process CPU time, or a device's trace) are empty where there is none.
    """

    order: list[int] = []
    inputs: list[int] = []
    left_s: list[float] = []
    right_s: list[float] = []
    left_second_s: list[float] = []
    right_second_s: list[float] = []
    voided: list[str] = []


class OutputCheck(Record, kw_only=True):
    """Results of timed calls, judged after the clock was read. `timed` calls ran, `checked` of them were chosen beforehand.

    `fresh`: of the checked ones, those on operands that no call had seen before. `how` says against what.
    """

    role: str
    how: str
    timed: int
    checked: int
    fresh: int
    differing: int
    note: str = ""


class TimedProcess(Record, kw_only=True):
    """One fresh process of a session.

    `comparison` pairs candidate (left) and baseline (right); `control` the baseline, loaded twice, against itself;
    `direction` the baseline run twice within a sample against the baseline: a pair whose answer is known. `compile_s`,
    `placement_s` and `warm_up_s` lie outside the boundary. `dispatch_s`: the median time of an empty program at the same
    boundary, 0 where it was not measured.
    """

    index: int
    seed: int
    compile_s: dict[str, float]
    placement_s: float
    warm_up_s: dict[str, list[float]]
    dispatch_s: float
    comparison: PairColumns
    control: PairColumns
    direction: PairColumns
    checks: list[OutputCheck] = []
    notes: list[str] = []


class SessionPlan(Record, kw_only=True):
    """What was fixed before the first sample that counts.

    `pairs` is of the whole session, for the comparison and again for the control. `pilot_noise` is the robust standard
    deviation of the pilot's log ratios, of the baseline against itself; `chosen` says how the number came about.
    """

    processes: int
    pairs: int
    direction_pairs: int
    warm_ups: int
    input_sets: int
    fresh_every: int
    check_every: int
    margin: float
    seed: int
    pilot_noise: float | None = None
    pilot_pairs: int = 0
    chosen: str = ""


class SessionScope(Record, kw_only=True):
    """Where a session ran, and what may be claimed from it: one of CLAIMS."""

    platform: str
    device_kind: str
    device_count: int
    claims: str
    versions: dict[str, str] = {}


class Session(Record, kw_only=True):
    """All samples of one comparison, from `plan.processes` processes. `provenance` is "measured" or "simulated"."""

    schema: str = "kernel-audit/session/1"
    id: str
    provenance: str
    scope: SessionScope
    boundary: str
    clock: ClockRecord
    second_clock: ClockRecord | None = None
    sides: list[TimedSide]
    plan: SessionPlan
    processes: list[TimedProcess]
    lost_processes: list[str] = []


class PilotRatio(Record, kw_only=True):
    """One program in a pilot against the yardstick: median of pair ratios, None where no pair counted.

    `session` is the id of the pilot, empty for the yardstick itself. `session_digest` is that of the pilot's whole record, so
    that no sample of it can be another; a choice may leave it empty.
    """

    name: str
    ratio: float | None
    pairs: int
    session: str
    session_digest: str = ""


class Choice(Record, kw_only=True):
    """How the program of one side was chosen among several; `pilots` is empty where there was one only.

    The ratios are for choosing and for nothing else: the least of several is too small by luck.
    """

    role: str
    chosen: str
    yardstick: str
    pilots: list[PilotRatio] = []


class Ratio(Record, kw_only=True):
    """A median of pair ratios with its 99 % interval; `high` is None where it has no upper end."""

    low: float
    ratio: float
    high: float | None


class SideTimes(Record, kw_only=True):
    """One side in short: seconds, and the robust coefficient of variation."""

    role: str
    median_s: float
    p90_s: float
    robust_cv: float


class TimingVerdict(Record, kw_only=True):
    """What a session says of its candidate: one of TIMING_VERDICTS, with the codes that it rests on (docs/timing.md).

    `session_digest` is that of the whole record, so that no sample of it can be another. A ratio is candidate over baseline:
    below 1 the candidate takes less time. It is None in a refused session, whose times are not reported. `pairs_needed` is the
    number of pairs that would find a difference of `margin`, None where the session could tell, or where no number would in
    that many processes. `findings` name what a reader must know beside the verdict, such as two clocks that disagree.
    """

    schema: str = "kernel-audit/timing-verdict/1"
    session: str
    session_digest: str
    verdict: str
    reasons: list[str]
    margin: float
    ratio: Ratio | None
    control: Ratio | None
    second_ratio: Ratio | None
    sides: list[SideTimes]
    pairs: int
    voided: dict[str, int]
    processes: int
    pairs_needed: int | None
    findings: list[str] = []
