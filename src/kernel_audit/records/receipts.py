"""A receipt: one observation of a comparison on a real device, with everything that it depends on. Losses are receipts, too.

What measures writes it and judges nothing but whether results were right; `verify` and `decide` recompute every figure from
its samples, and say when it is about something else than the audit at hand.
"""

from __future__ import annotations

from typing import Any

from kernel_audit.records.canonical import Record, digest_of
from kernel_audit.records.timing import Choice, PilotRatio, Session, TimingVerdict

RECEIPT, FAILURE = "receipt", "failure"
RECEIPT_KINDS = (RECEIPT, FAILURE)
PROGRAM, STEP = "program", "step"
RECEIPT_PARTS = (PROGRAM, STEP)
CPU = "cpu"  # the target of sessions that may claim nothing about a target
HOST = "host"  # whose failure it was, where neither program ran
ABLATION = (
    "ablation"  # the role of a twin of the candidate with one optimisation off: no failure of it is the candidate's
)

BOUNDARY = (
    "from logical operands already placed on the device to a complete, synchronised logical output; padding, call and cropping "
    "inside, compilation and placement outside"
)
BOUNDARY_POLICY = (
    "the operands of the contract, unpadded, on both sides; nothing donated; operands rotated and some fresh; the whole "
    "result waited for, and results of timed calls judged afterwards"
)
STALE_WHEN = (
    "a source, the contract, a configuration or a program is another",
    "the device, its driver or its runtime is another",
    "a version of JAX is another: it compiles another program",
)


class ReceiptDevice(Record, kw_only=True):
    """What ran it. `kind` is what JAX calls the device; `driver` and `runtime` are empty where they cannot be read."""

    platform: str
    kind: str
    count: int
    driver: str = ""
    runtime: str = ""


class Ceiling(Record, kw_only=True):
    """What the device reached on a plain program before any kernel ran: "copy" (bytes a second, read and written) or
    "matrix-product" (operations a second). `work` is that of one call; `samples_s` are all of them, seconds."""

    kind: str
    dtype: str
    work: float
    samples_s: list[float]
    per_s: float


class ReceiptProgram(Record, kw_only=True):
    """A program by its digests: of the canonical jaxpr, of the bytes that ran, of the compiled text (empty where the
    runtime gives none). `kernels` are their names; `bytes_moved` what grids and maps move, None where it cannot be told."""

    role: str
    name: str
    program: str
    exported: str
    compiled: str = ""
    kernels: list[str] = []
    bytes_moved: int | None = None
    configuration: dict[str, Any] = {}


class TargetCheck(Record, kw_only=True):
    """The complete logical output of one side at one fixture, against the represented-input oracle, on the device.

    `differing` elements of `elements` lie outside of the agreement; `error_max` is the largest distance from it in the unit of
    the result, None where none is finite. `inputs` is the digest of the operands.
    """

    role: str
    name: str
    fixture: str
    inputs: str
    how: str
    elements: int
    differing: int
    error_max: float | None
    note: str = ""


class Achieved(Record, kw_only=True):
    """What one side reached in its median time. `least_bytes` are operands and results, each once; shares are of the ceilings
    measured on this device, None where there is none of the kind or nothing to count."""

    role: str
    median_s: float
    least_bytes: int
    bytes_per_s: float
    share_of_copy: float | None = None
    flops: float | None = None
    flops_per_s: float | None = None
    share_of_product: float | None = None


class PeakMemory(Record, kw_only=True):
    """Bytes of one side on one device: `arguments` + `results` + `temporary` of the compiled program, and their sum."""

    role: str
    arguments_bytes: int
    results_bytes: int
    temporary_bytes: int
    peak_bytes: int


class Failure(Record, kw_only=True):
    """What failed on the target. `role` is "candidate", "baseline", "ablation" or "host"; `name` is that of the program."""

    stage: str
    role: str
    name: str
    what: str
    expected: str
    got: str


class Receipt(Record, kw_only=True):
    """One comparison on one device. `kind` "failure" has `failures` and whatever was known by then, and no verdict; a receipt
    may have some, of configurations or baselines that were left out for them.

    `run`, `number` and `of`: one measurement writes `of` receipts, numbered from 1; how many was fixed beforehand, so that one
    that is left out is missed. `contract` is the digest of the audit. `part` is "program" for the kernel alone, "step" for the
    complete step. `sources` are the judged files by label. `precision` is that of the contract and of JAX. `candidates` are
    the configurations that were tried and `baselines` the names, those that failed among them; `choices` say how the two sides
    were chosen among several, `pilots` holds the sessions that they were chosen on, and those of the twins. `compile_s` by
    role, cold. `ablations` begins with the candidate that was chosen; its twins follow, in its configuration, each against the
    yardstick of the choices. They decide nothing. Empty where the audit names none, or none could be timed.
    """

    schema: str = "kernel-audit/receipt/1"
    kind: str
    run: str
    number: int
    of: int
    audit: str
    contract: str
    sources: dict[str, str]
    part: str
    step: str = ""
    target: str
    device: ReceiptDevice
    versions: dict[str, str]
    dims: dict[str, int]
    dtype: str
    mode: dict[str, Any] = {}
    precision: dict[str, str]
    boundary: str = BOUNDARY
    boundary_policy: str = BOUNDARY_POLICY
    inputs: dict[str, str] = {}
    programs: list[ReceiptProgram] = []
    candidates: list[dict[str, Any]] = []
    baselines: list[str] = []
    checks: list[TargetCheck] = []
    compile_s: dict[str, float] = {}
    session: Session | None = None
    verdict: TimingVerdict | None = None
    choices: list[Choice] = []
    pilots: list[Session] = []
    ablations: list[PilotRatio] = []
    ceilings: list[Ceiling] = []
    achieved: list[Achieved] = []
    memory: list[PeakMemory] = []
    stale_when: list[str]
    failures: list[Failure] = []

    @property
    def configuration(self) -> dict[str, Any]:
        """That of the candidate that was timed."""
        return next((each.configuration for each in self.programs if each.role == "candidate"), {})


def receipt_name(receipt: Receipt) -> str:
    """How findings and files refer to a receipt: "gpu-h200-program-float32-0123456789ab"."""
    parts = [receipt.target.replace(":", "-"), receipt.part, receipt.dtype.replace("=", "-").replace(",", "-")]
    return "-".join([*parts, digest_of(receipt)[7:19]])
