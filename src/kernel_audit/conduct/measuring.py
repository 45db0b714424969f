"""`kernel-audit measure`: an audit's programs on the device that is here. The parent's side; imports no JAX, no candidate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kernel_audit.conduct.evaluation import evaluate
from kernel_audit.conduct.question import Question, given_files, localised, roots_of
from kernel_audit.contract import Audit, require_to_decide
from kernel_audit.errors import BundleError, TargetError
from kernel_audit.matrix.check import Progress
from kernel_audit.matrix.laboratory import PRELOAD, Limits
from kernel_audit.measure import Amount, Comparison, Measuring, estimated_s, planned
from kernel_audit.measure.sweeps import lines_of, sweep_sizes, swept_names
from kernel_audit.records import CPU, Receipt, Record, digest_file, encode, receipt_name
from kernel_audit.statistics import crossover
from kernel_audit.worker import Pool
from kernel_audit.worker.scratch import scratch_folder
from kernel_audit.worker.unconfined import Unconfined

MEASURE_PRELOAD = (*PRELOAD, "kernel_audit.target.export_job", "kernel_audit.measure.reference_job")
EXPORT_DEADLINE_S = 600.0


@dataclass(frozen=True)
class MeasureQuestion:
    """What is to be measured: on "tpu", "gpu" or, for programs without a kernel, "cpu"; `sweeps` as on the command line."""

    question: Question
    target: str
    sweeps: tuple[str, ...] = ()
    amount: Amount = field(default_factory=Amount)


class PlannedMeasurement(Record, kw_only=True):
    """What `--dry-run` says. `about_s` is an estimate of a machine that nothing is known of, and no measurement."""

    audit: str
    target: str
    comparisons: list[str]
    candidates: int
    baselines: list[str]
    ablations: list[str] = []
    processes: int
    pairs: str
    about_s: float
    needs: str
    may_claim: str


class SweepLine(Record, kw_only=True):
    """Where along one dimension the candidate begins or ceases to be faster: an interval, or none in range."""

    part: str
    dtype: str
    dimension: str
    fixed: dict[str, int]
    says: str


@dataclass(frozen=True)
class Measured:
    """The receipts of a measurement, and the crossovers of a sweep."""

    receipts: list[Receipt]
    lines: list[SweepLine] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether something failed on the target."""
        return any(each.failures for each in self.receipts)


def plan(asked: MeasureQuestion) -> PlannedMeasurement:
    """What would be measured, and for how long; nothing is looked at but the audit. Raises AuditFileError as `run` does."""
    with scratch_folder() as folder, Pool(size=1, preload=PRELOAD) as pool:
        audit, _ = evaluate(localised(asked.question), pool, folder.resolve() / "audit")
    _require_for(audit, asked.target)
    comparisons = planned(audit, asked.target, sweep_sizes(audit, asked.sweeps) or None)
    amount = asked.amount
    return PlannedMeasurement(
        audit=audit.name,
        target=asked.target,
        comparisons=[each.text for each in comparisons],
        candidates=max((len(each.configurations) for each in comparisons), default=0),
        baselines=[each.name for each in audit.baselines],
        processes=amount.processes,
        pairs=str(amount.pairs) if amount.pairs else f"by a pilot of the noise, {amount.most_pairs} at most",
        ablations=[each.name for each in audit.ablations],
        about_s=round(
            estimated_s(comparisons, len(audit.baselines), amount.processes, amount.pairs or 600, len(audit.ablations))
        ),
        needs=f"a {asked.target.upper()}" if asked.target != CPU else "a CPU, and programs without a kernel",
        may_claim="nothing about a TPU or GPU" if asked.target == CPU else "times and correctness of this device",
    )


def measure(asked: MeasureQuestion, progress: Progress) -> Measured:
    """Receipts for every dtype and mode of the audit, alone and in its step.

    Raises TargetError before anything is allocated where the target is not there, or a program would be interpreted; and
    AuditFileError for the audit. No option changes that.
    """
    device = Unconfined(_device_environment(asked.target))
    with scratch_folder() as folder, _pool() as pool:
        work = folder.resolve()
        audit, files = evaluate(localised(asked.question), pool, work / "audit")
        _require_for(audit, asked.target)
        files |= {each.name: str(each) for each in given_files(asked.question)}
        sizes = sweep_sizes(audit, asked.sweeps)
        measuring = Measuring(
            audit,
            asked.target,
            device,
            pool,
            work,
            roots_of(asked.question),
            {label: digest_file(Path(path)) for label, path in sorted(files.items())},
            limits=Limits(max(EXPORT_DEADLINE_S, asked.question.limits.deadline_s)),
            amount=asked.amount,
            progress=progress,
        )
        receipts = measuring.measure(sizes or None)
    return Measured(receipts, crossovers(audit, receipts, asked.sweeps))


def crossovers(audit: Audit, receipts: Sequence[Receipt], sweeps: Sequence[str]) -> list[SweepLine]:
    """One line for each swept dimension, part and dtype, and for each choice of the other sizes."""
    found = []
    for name in swept_names(sweeps):
        for part, dtype in dict.fromkeys((each.part, each.dtype) for each in receipts):
            mine = [each for each in receipts if (each.part, each.dtype) == (part, dtype)]
            for fixed in lines_of([each.dims for each in mine], name):
                points = [
                    (float(each.dims[name]), each.verdict.verdict)
                    for each in mine
                    if each.verdict is not None and {**fixed, name: each.dims[name]} == each.dims
                ]
                says = crossover(points).text(name) if points else f"nothing was timed along {name}"
                found.append(SweepLine(part=part, dtype=dtype, dimension=name, fixed=fixed, says=says))
    return found


def write_receipts(receipts: Sequence[Receipt], folder: Path) -> list[Path]:
    """One file a receipt, named by what it is of. Raises BundleError where the folder cannot be written."""
    places = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each in receipts:
            place = folder / f"{receipt_name(each)}.json"
            unfinished = place.with_suffix(".tmp")
            unfinished.write_bytes(encode(each))
            unfinished.replace(place)
            places.append(place)
    except OSError as error:
        raise BundleError(
            "the receipts cannot be written",
            stage="measure",
            where=f"--out {folder}",
            expected="a folder that can be made",
            got=str(error.strerror),
            next_command="choose another --out",
        ) from None
    return places


def _require_for(audit: Audit, target: str) -> None:
    """Raises AuditFileError for an audit that cannot be decided, and TargetError for one that is not for this target."""
    require_to_decide(audit)
    named = [each for each in audit.targets or () if each.partition(":")[0] == target]
    if target == CPU or ((audit.targets is None or named) and audit.configurations_for(target)):
        return
    raise TargetError(
        "the audit is not for this target",
        stage="measure",
        where=f"{audit.name}, --target {target}",
        expected="one of the targets that the audit names, with a configuration for it",
        got=", ".join(audit.targets or ()) or "targets=[]",
        next_command=f'targets=["{target}:..."] in the audit, where its kernel is for one',
    )


@contextmanager
def _pool():
    with Pool(size=2, preload=MEASURE_PRELOAD) as pool:
        yield pool


def _device_environment(target: str) -> dict[str, str]:
    """The user's own settings hold; the CPU, where results are judged, has to be among the platforms that are named."""
    platforms = os.environ.get("JAX_PLATFORMS", "")
    if target == CPU:
        return {"JAX_PLATFORMS": CPU}
    return {"JAX_PLATFORMS": f"{platforms},{CPU}"} if platforms and CPU not in platforms.split(",") else {}


__all__ = [
    "Comparison",
    "MeasureQuestion",
    "Measured",
    "PlannedMeasurement",
    "SweepLine",
    "measure",
    "plan",
    "write_receipts",
]
