"""A profile of the complete step: what `profile/profile.json` holds. Measured regions and inferred causes are kept apart.

Times are nanoseconds, raw: every statistic here can be computed again from the samples beside it.
"""

from __future__ import annotations

from kernel_audit.records.canonical import Record

LOCAL, STAGING, RESHARDING, COMMUNICATION = "local-arithmetic", "input-staging", "resharding", "communication"
PADDING, UPDATE, DISPATCH = "padding-and-cropping", "update", "dispatch"
UNMAPPED = "unmapped"
# What a step is divided into; a step may name regions of its own beside them. Dispatch is when nothing works.
STEP_REGIONS = (LOCAL, STAGING, RESHARDING, COMMUNICATION, PADDING, UPDATE, DISPATCH)
# How an operation's region was found, in the order in which they are tried.
MEANS = ("opcode", "scope", "neighbours", UNMAPPED)


class ColdTimes(Record, kw_only=True):
    """Seconds before the first warm step, each part apart."""

    trace_s: float
    lower_s: float
    compile_s: float


class WarmPass(Record, kw_only=True):
    """The untraced, timed pass. `wall_ns` has one sample a step, from the operands on the host to results that are ready.

    `synchronised`: how many steps waited for their results: all, or the samples are dispatch times. `dispatched_ns`: when the
    call of the program had returned, which says nothing about the step. `compile_events`: traces, lowerings and compilations
    that JAX reported inside the pass: 0, or it was not warm. `boundary` says what is inside a sample.
    """

    wall_ns: list[int]
    dispatched_ns: list[int]
    synchronised: int
    compile_events: int
    boundary: str


class Overhead(Record, kw_only=True):
    """The profiler's cost: steps without and with it in alternating blocks; `ratio` is that of the medians."""

    untraced_ns: list[int]
    traced_ns: list[int]
    ratio: float


class TraceFile(Record, kw_only=True):
    """A file below `profile/`, after what names a machine, a person or a folder was removed."""

    name: str
    digest: str
    size_bytes: int


class TracedPass(Record, kw_only=True):
    """The traced pass, never the timed one. `wall_ns`: one a traced step. `events`: operations read, over all devices
    and steps.

    `reader` says which planes were read and `verified` whether a receipt shows that they are read rightly: for TPU and
    GPU planes none does yet. `unknown` are operations of the trace that the program's text does not have.
    """

    wall_ns: list[float]
    events: int
    reader: str
    verified: bool
    compile_events: int
    unknown: list[str] = []
    files: list[TraceFile] = []


class RegionTime(Record, kw_only=True):
    """What one region takes of each traced step, by the sweep over all devices; the regions of a step sum to its wall.

    `share` is the ratio of the sums over steps, with a 95 % interval from resampled steps. `waiting_ns` is the part in which
    every device only waited for a collective.
    """

    name: str
    time_ns: list[float]
    share: float
    share_low: float
    share_high: float
    waiting_ns: float = 0.0


class OperationTime(Record, kw_only=True):
    """One instruction of the compiled step: its region, by which of MEANS it was found, and its time over all devices and
    steps.
    """

    name: str
    opcode: str
    region: str
    by: str
    events: int
    time_ns: float


class StagedPart(Record, kw_only=True):
    """One executable of the step cut at its regions, run alone and waited for."""

    name: str
    region: str
    wall_ns: list[int]


class StagedCheck(Record, kw_only=True):
    """The step as one executable a region: clean labels, without what fusion and overlap save. `ratio`: its total to the
    fused step.
    """

    parts: list[StagedPart]
    fused_ns: list[int]
    ratio: float


class Ablation(Record, kw_only=True):
    """The step beside its twin without one part, in pairs. The difference is the part's marginal time, with a 95 % interval.

    A twin computes something else on purpose. `note` says what was put in the part's place.
    """

    removed: str
    step_ns: list[int]
    twin_ns: list[int]
    difference_ns: float
    low_ns: float
    high_ns: float
    note: str


class Cause(Record, kw_only=True):
    """Why a region may take what it takes: inferred, not measured. `rests_on` names the figures that suggest it."""

    region: str
    text: str
    rests_on: str


class Opportunity(Record, kw_only=True):
    """What the step could gain from one region, on the platform profiled. Derived from its share.

    `speedup` is that of the step at `local_speedup`; `limit` were the region to cost nothing, `limit_high` the same at
    the upper end of the share's interval. `needed` is how much faster the region must become for the audit's margin;
    None: no factor will do.
    """

    region: str
    share: float
    share_low: float
    share_high: float
    local_speedup: float
    speedup: float
    limit: float | None
    limit_high: float | None
    needed: float | None
    margin: float


class ProfileRecord(Record, kw_only=True):
    """One profile of a complete step.

    `step` names its factory, `side` what stood in the candidate's place: a profile with another side in place is
    another profile. `target` is the declared target that the devices are, None for logical devices of a host
    (`logical`): shares on those decide nothing. `program_digest` is that of the compiled step's text beside the trace,
    `profile/rank-0/step.hlo.txt`.

    `mapping` gives the share of all operation time by each of MEANS. `candidate_region` is the candidate's place, `margin` the
    audit's worth.
    """

    schema: str = "kernel-audit/profile/1"
    step: str
    side: str
    target: str | None
    platform: str
    device_kind: str
    logical: bool
    devices: int
    processes: int
    dims: dict[str, int]
    dtypes: dict[str, str]
    placement: dict[str, str]
    state: list[str]
    versions: dict[str, str]
    program_digest: str
    provenance: str = "measured"
    cold: ColdTimes
    warm: WarmPass
    overhead: Overhead
    traced: TracedPass
    regions: list[RegionTime]
    operations: list[OperationTime]
    mapping: dict[str, float]
    staged: StagedCheck | None = None
    staged_note: str = ""
    ablations: list[Ablation] = []
    causes: list[Cause] = []
    candidate_region: str = LOCAL
    margin: float = 0.0
    opportunity: list[Opportunity] = []


class PolicyTwin(Record, kw_only=True):
    """The step under one checkpoint policy, beside the step without any (`none`).

    `accepted`: whether the compiler took it; `reason` says why not. `temporary_bytes` are the compiler's, of one device.
    `flops` are counted in the traced program of all devices, loops by their trips; `recomputed_flops` is what it has
    more than the step without a policy. `host_transfer_bytes` is what one step moves between device and host memory,
    both ways. `errors`: for each result the normwise relative difference from the step without a policy, None where it
    is not finite. `within` is None where nothing was compared: this one or the step without a policy did not run.
    `lost_names`: kernels and gradient rules that run again though the policy saves or offloads what they are named.
    """

    policy: str
    accepted: bool
    reason: str = ""
    temporary_bytes: int | None = None
    argument_bytes: int | None = None
    flops: int = 0
    recomputed_flops: int = 0
    host_transfer_bytes: int = 0
    checkpoints: int = 0
    names: list[str] = []
    errors: dict[str, float | None] = {}
    bound: float = 0.0
    within: bool | None = None
    lost_names: list[str] = []


class PolicyReport(Record, kw_only=True):
    """What `profile --remat` prints: the twins of one step, `none` first."""

    schema: str = "kernel-audit/policies/1"
    step: str
    side: str
    platform: str
    devices: int
    dims: dict[str, int]
    versions: dict[str, str]
    twins: list[PolicyTwin]

    @property
    def compared(self) -> bool:
        """Whether the step without a policy ran and no twin gave other results; one that did not run gave none."""
        plain = next((each.within for each in self.twins if each.policy == "none"), None)
        return plain is True and all(each.within is not False for each in self.twins)
