"""What `workload.json` holds: the complete step on logical devices, against a reference on the host. Values, and no times."""

from __future__ import annotations

from typing import Any

from kernel_audit.records.canonical import Record


class StepPartition(Record, kw_only=True):
    """How examples are cut over devices: `counts[k]` of them on device k of the mesh in row-major order, each device having
    `rows` rows. `whole`: all rows are examples, and the step is told no counts. `order` is that of the examples: "as drawn",
    or "permuted"."""

    name: str
    mesh: dict[str, int]
    counts: list[int]
    rows: int
    whole: bool
    order: str = "as drawn"

    @property
    def devices(self) -> int:
        return len(self.counts)

    @property
    def examples(self) -> int:
        return sum(self.counts)


class PlacedArray(Record, kw_only=True):
    """An operand or a result as it was observed on the devices: `shards[k]` are its (start, stop) on device k, a pair a
    dimension. `spec` is what was asked; `as_asked` whether what was observed is that."""

    name: str
    dtype: str
    shape: list[int]
    spec: str
    shards: list[list[list[int]]]
    as_asked: bool

    @property
    def replicated(self) -> bool:
        """Whether every device holds all of it."""
        return all(
            stop - start == size for shard in self.shards for (start, stop), size in zip(shard, self.shape, strict=True)
        )


class StepCollective(Record, kw_only=True):
    """A collective of the compiled step. `payload_bytes` is what one device puts in, `wire_bytes` what it sends by the ring
    model: a model of no particular network. `groups` are places in the mesh; empty where all devices take part."""

    kind: str
    payload_bytes: int
    wire_bytes: int
    groups: list[list[int]]
    trips: int | None = 1
    model: str = "ring"


class StepErrors(Record, kw_only=True):
    """Normwise relative errors after one update, the largest of all copies; None where a value is not finite. `gradient` is
    None too where the step gives none."""

    loss: float | None
    gradient: float | None
    state: float | None


class StepRun(Record, kw_only=True):
    """One step on one partition: its errors against the host, update by update.

    `outcome`: "right", "wrong" (`codes` say how, where it could be told), "refused", "raised", "died". `side` is "candidate" or
    a baseline's name; `step` says whose step it is: "workload", or "candidate" for one of the candidate's own. `padding` tells
    for each filling of the rows beyond the counts whether the first update was right. `check_vma` is what tracing with
    `check_vma=True` said: told, not required; empty where it was not tried.
    """

    partition: str
    side: str
    step: str = "workload"
    dtype: str
    configuration: dict[str, Any] = {}
    outcome: str
    codes: list[str] = []
    note: str = ""
    program: str = ""
    kernels: list[str] = []
    errors: list[StepErrors] = []
    losses: list[float | None] = []
    copies_equal: bool | None = None
    differing: list[str] = []
    padding: dict[str, bool] = {}
    gathered: list[str] = []
    donated: list[str] = []
    check_vma: str = ""
    operands: list[PlacedArray] = []
    results: list[PlacedArray] = []
    collectives: list[StepCollective] = []


def step_run_name(run: StepRun) -> str:
    """How findings refer to a run of the step: "step/candidate/bfloat16/form=tpu/data=8/13"."""
    choices = ",".join(f"{key}={value}" for key, value in run.configuration.items())
    owner = "step" if run.step == "workload" else f"step of {run.step}"
    return "/".join([owner, run.side, run.dtype, *([choices] if choices else []), run.partition])


class HostCheck(Record, kw_only=True):
    """The reference, checked before any step is run: its gradient against differences of its own loss, and the mean over parts
    against the whole; relative errors. A sequence that leaves the finite numbers is wrong, too. `losses` are those of the
    sequence of updates on all examples; `inputs` maps each number of examples to the digest of each operand, in float64 as
    drawn."""

    independent: bool
    rule: str
    slope_error: float | None = None
    additivity_error: float | None = None
    losses: list[float | None] = []
    gradient_norms: list[float | None] = []
    inputs: dict[str, dict[str, str]] = {}
    right: bool = True
    note: str = ""


class Aggregation(Record, kw_only=True):
    """Means of the shards joined in two ways, put through the check that steps are put through. Errors are normwise relative;
    `*_codes` are what the check says of it."""

    counts: list[int]
    unweighted_loss_error: float
    unweighted_gradient_error: float
    unweighted_codes: list[str]
    weighted_loss_error: float
    weighted_gradient_error: float
    weighted_codes: list[str]


class RankRecord(Record, kw_only=True):
    """One process of several. `outcome`: "finished", "raised", "killed" (by a signal from elsewhere), "lost-peer" (ended by the
    runtime because another was gone), "stuck" (stopped at the deadline)."""

    rank: int
    outcome: str
    exit_code: int | None = None
    signal: int | None = None
    seconds: float
    processes: int | None = None
    devices: int | None = None
    local_devices: int | None = None
    note: str = ""


class ProcessesRun(Record, kw_only=True):
    """The step over several processes. `outcome`: "right", "wrong", "rank-lost", "coordinator-lost", "stuck", "raised",
    "not-run". `cause` is the rank that it is put down to."""

    side: str
    partition: str
    processes: int
    devices_each: int
    outcome: str
    cause: int | None = None
    deadline_s: float
    seconds: float
    ranks: list[RankRecord] = []
    errors: list[StepErrors] = []
    collectives_by: str = ""
    note: str = ""


class WorkloadRecord(Record, kw_only=True):
    """All that is known of the complete step: frozen inputs, the reference, partitions, runs of each side, the aggregation
    exhibit and the run over several processes."""

    schema: str = "kernel-audit/workload/1"
    audit: str
    step: str
    host: str
    seed: int
    within: float
    updates: int
    dims: dict[str, int]
    examples: str
    compute: str
    parameters: str
    output: str
    platform: str = "cpu, logical devices: partitioning and values, no times"
    reference: HostCheck
    partitions: list[StepPartition]
    runs: list[StepRun]
    aggregation: list[Aggregation] = []
    processes: list[ProcessesRun] = []
