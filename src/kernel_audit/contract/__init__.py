"""What a kernel promises, and the audit file that states it. No JAX."""

from kernel_audit.contract.checks import require_to_decide
from kernel_audit.contract.declare import audit, declared
from kernel_audit.contract.functions import AUDIT_MODULE, reference_to, source_file
from kernel_audit.contract.model import (
    Ablation,
    Agreement,
    Audit,
    Baseline,
    ControlFunction,
    Dimension,
    Door,
    FunctionRef,
    Invariant,
    Operand,
    Oracle,
    Precision,
    Probe,
    Refusal,
    Sequence,
    StepPrecision,
    Values,
    Workload,
    Worth,
)
from kernel_audit.contract.spec import parse_array
from kernel_audit.contract.tuning import TargetTuning

__all__ = [
    "AUDIT_MODULE",
    "Ablation",
    "Agreement",
    "Audit",
    "Baseline",
    "ControlFunction",
    "Dimension",
    "Door",
    "FunctionRef",
    "Invariant",
    "Operand",
    "Oracle",
    "Precision",
    "Probe",
    "Refusal",
    "Sequence",
    "StepPrecision",
    "TargetTuning",
    "Values",
    "Workload",
    "Worth",
    "audit",
    "declared",
    "parse_array",
    "reference_to",
    "require_to_decide",
    "source_file",
]
