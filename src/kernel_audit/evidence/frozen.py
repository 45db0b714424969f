"""What the bundle holds of the question, and everything that was observed about it, as one value."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import msgspec

from kernel_audit.contract import Audit
from kernel_audit.records import (
    CaptureRecord,
    Cell,
    CompiledRecord,
    Control,
    Environment,
    KernelInspection,
    Plan,
    ProfileRecord,
    Receipt,
    Record,
    RefusalCheck,
    WorkloadRecord,
    encode,
)


class FrozenAudit(Record, kw_only=True):
    """The frozen question: `audit.json`. `reference` is AUDIT as it was asked, without folders;
    `cells` and `quick` are what the plan was restricted to.

    `late_seed` draws the values of the family "fresh"; `late_seed_commitment` is the SHA-256 of its decimal text and was
    written before the candidate was loaded. `sources` maps each judged source under `sources/` to its digest.
    """

    schema: str = "kernel-audit/frozen-audit/1"
    reference: str
    cells: str | None = None
    quick: bool = False
    audit: Audit
    plan: Plan
    late_seed: int
    late_seed_commitment: str
    sources: dict[str, str]


@dataclass(frozen=True)
class Evidence:
    """All records of one audit: what `decide` sees, whether just observed or read from a bundle."""

    frozen: FrozenAudit
    environment: Environment
    programs: list[CaptureRecord] = field(default_factory=list)
    kernels: list[KernelInspection] = field(default_factory=list)
    compiled: list[CompiledRecord] = field(default_factory=list)
    cells: list[Cell] = field(default_factory=list)
    controls: list[Control] = field(default_factory=list)
    refusals: list[RefusalCheck] = field(default_factory=list)
    profile: ProfileRecord | None = None
    workload: WorkloadRecord | None = None
    receipts: list[Receipt] = field(default_factory=list)


def as_read(evidence: Evidence) -> Evidence:
    """The evidence as a reader of its bundle will have it: every table in the order of canonical JSON. What is decided and
    drawn from it is then the same for both."""
    return replace(evidence, **{each.name: _again(getattr(evidence, each.name)) for each in fields(evidence)})


def _again(value: Any) -> Any:
    if isinstance(value, list):
        return [_again(each) for each in value]
    return value if value is None else msgspec.json.decode(encode(value), type=type(value))
