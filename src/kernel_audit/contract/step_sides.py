"""What of an audit is put into its complete step: a baseline and the candidate, in each dtype, on which partitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kernel_audit.contract.model import Audit, FunctionRef, Workload
from kernel_audit.contract.step_partitions import QUICK, partitions
from kernel_audit.contract.tuning import TargetTuning
from kernel_audit.records import StepPartition, StepRun, WorkloadRecord, step_run_name

CANDIDATE = "candidate"


@dataclass(frozen=True)
class StepSide:
    """A function in a step: `name` "candidate" or a baseline's, `owner` whose step it is, "workload" or "candidate"."""

    name: str
    function: FunctionRef
    step: FunctionRef
    owner: str
    binding: dict[str, str]
    configuration: dict[str, Any] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    quick: bool = False

    @property
    def dtype(self) -> str:
        return ",".join(self.binding.values()) or "float32"

    @property
    def about(self) -> dict[str, Any]:
        """What a run says of whose it is."""
        return {"side": self.name, "step": self.owner, "dtype": self.dtype, "configuration": self.configuration}

    def of(self, cut: list[StepPartition]) -> list[StepPartition]:
        """The partitions that it is tried on."""
        return [each for each in cut if not self.quick or each.name in QUICK]


def sides_of(audit: Audit, workload: Workload) -> list[StepSide]:
    """The first baseline in the workload's step and the candidate, in its own step where it has one, each in every dtype; and
    the candidate's other forms, on few partitions."""
    bindings = audit.dtype_bindings()
    found = [
        StepSide(each.name, each.function, workload.step, "workload", binding)
        for each in audit.baselines[:1]
        for binding in bindings
    ]
    owner = CANDIDATE if workload.candidate_step is not None else "workload"
    step = workload.candidate_step or workload.step
    forms = _forms(audit)
    for binding in bindings:
        found.append(StepSide(CANDIDATE, audit.candidate, step, owner, binding, forms[0], audit.fixed))
    for form in forms[1:]:
        found.append(StepSide(CANDIDATE, audit.candidate, step, owner, bindings[0], form, audit.fixed, quick=True))
    return found


def planned_partitions(audit: Audit, record: WorkloadRecord) -> list[StepPartition]:
    """Those of the audit's workload: all, or the few that tell most where the record holds those and no other."""
    workload = audit.workload
    if workload is None:
        return []
    examples = workload.dims[workload.examples]
    few = partitions(examples, quick=True)
    return few if record.partitions == few else partitions(examples)


def planned_runs(audit: Audit, record: WorkloadRecord) -> list[str]:
    """The name of every run of the audit's workload, as `step_run_name` gives it; none for an audit without a workload."""
    if audit.workload is None:
        return []
    cut = planned_partitions(audit, record)
    return [
        step_run_name(StepRun(partition=each.name, outcome="", **side.about))
        for side in sides_of(audit, audit.workload)
        for each in side.of(cut)
    ]


def _forms(audit: Audit) -> list[dict[str, Any]]:
    """The first configuration, and the first of each product of tuning that is for other targets."""
    products = audit.tuning if isinstance(audit.tuning, list) else []
    firsts = [_first(each) for each in products] or audit.configurations()[:1] or [{}]
    return [each for index, each in enumerate(firsts) if each not in firsts[:index]]


def _first(product: TargetTuning) -> dict[str, Any]:
    return {name: choices[0] for name, choices in product.choices.items()}
