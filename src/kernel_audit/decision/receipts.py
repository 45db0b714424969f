"""Which receipts count for the audit at hand. One that is stale, altered or about something else is ignored, by name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from kernel_audit.decision.finding import finding
from kernel_audit.errors import AuditError
from kernel_audit.evidence import Evidence, contradictions
from kernel_audit.records import (
    BOUNDARY,
    CPU,
    PROGRAM,
    STEP,
    Finding,
    Receipt,
    device_of,
    digest_of,
    dtype_text,
    encode,
    receipt_name,
)

# One measurement has one of each.
SHARED = ("audit", "contract", "sources", "target", "device", "versions", "precision", "of")


@dataclass(frozen=True)
class Counted:
    """The receipts that count, and a finding for each that does not."""

    valid: list[Receipt] = field(default_factory=list)
    ignored: list[Finding] = field(default_factory=list)

    def of(self, target: str, dtype: str, mode: dict[str, object], part: str) -> list[Receipt]:
        """Those of one part of one regime."""
        wanted = (target, dtype, encode(mode), part)
        return [each for each in self.valid if (each.target, each.dtype, encode(each.mode), each.part) == wanted]


def counted(evidence: Evidence) -> Counted:
    """Every receipt of the evidence, sorted into those that count and those that do not."""
    found = Counted()
    for receipt in evidence.receipts:
        reason = next(_reasons_against(evidence, receipt), None)
        if reason is None:
            found.valid.append(receipt)
        else:
            code, text = reason
            found.ignored.append(finding(code, text, [receipt_name(receipt)], scope=receipt.target))
    return found


def left_out(evidence: Evidence) -> dict[str, str]:
    """By target: what is missing of a measurement of which only a part was handed in, or whose receipts say different things
    of what all of them share, so that one of them was made to be ignored. Losses are evidence, too."""
    runs: dict[str, list[Receipt]] = defaultdict(list)
    for each in evidence.receipts:
        runs[each.run].append(each)
    found = {}
    for run, receipts in sorted(runs.items()):
        there, of = {each.number for each in receipts}, max(each.of for each in receipts)
        if missing := sorted(set(range(1, of + 1)) - there):
            found[receipts[0].target] = (
                f"measurement {run}: {len(missing)} of {of} receipts are not there, first {missing[0]}"
            )
        for name in SHARED:
            if len({encode(getattr(each, name)) for each in receipts}) > 1:
                text = f"measurement {run}: its receipts disagree about {name}, which all of one measurement share"
                found |= {each.target: text for each in receipts}
    return found


def _reasons_against(evidence: Evidence, receipt: Receipt) -> Iterator[tuple[str, str]]:
    """(code, text) of whatever speaks against it, the gravest first."""
    audit = evidence.frozen.audit
    if wrong := contradictions(receipt, audit):
        yield "receipt-altered", wrong[0]
    if receipt.target == CPU or any(each.scope.claims != "target" for each in _sessions(receipt)):
        yield "receipt-of-a-cpu", f"a session on {receipt.device.kind}, which claims nothing about a target"
    if any(each.provenance != "measured" for each in _sessions(receipt)):
        yield "receipt-not-measured", "its samples are simulated"
    yield from _elsewhere(evidence, receipt)
    yield from _other_sources(evidence, receipt)
    if receipt.contract != digest_of(audit):
        yield "receipt-other-contract", "it was measured under another contract"
    if receipt.dims != audit.declared_dims:
        yield "receipt-other-shape", f"measured at {receipt.dims}, declared are {audit.declared_dims}"
    if receipt.part == STEP and receipt.step != audit.worth.step:
        yield "receipt-other-boundary", f"the step {receipt.step!r}, the audit names {audit.worth.step!r}"
    if receipt.boundary != BOUNDARY:
        yield "receipt-other-boundary", f"measured {receipt.boundary!r}"
    if receipt.precision != audit.measured_precision or receipt.dtype not in _dtypes(evidence):
        yield "receipt-other-precision", f"{receipt.dtype}, {receipt.precision}"
    if receipt.verdict is not None and receipt.configuration not in audit.configurations_for(receipt.target):
        yield "receipt-other-configuration", f"{receipt.configuration} is not declared for {receipt.target}"
    yield from _other_program(evidence, receipt)


def _sessions(receipt: Receipt) -> list:
    return [each for each in (receipt.session, *receipt.pilots) if each is not None]


def _elsewhere(evidence: Evidence, receipt: Receipt) -> Iterator[tuple[str, str]]:
    from kernel_audit.decision.rules import declared_targets

    targets = declared_targets(evidence)
    if receipt.target not in targets:
        yield "receipt-other-device", f"{receipt.target}, the audit names {', '.join(targets) or 'none'}"
        return
    try:
        described = device_of(receipt.target)
    except AuditError:
        return
    if (receipt.device.platform, receipt.device.kind) != (described.kind, described.device_kind):
        yield "receipt-other-device", f"{receipt.device.kind!r} is no {receipt.target} ({described.device_kind!r})"


def _other_sources(evidence: Evidence, receipt: Receipt) -> Iterator[tuple[str, str]]:
    """A judged file that is another one in the receipt, or that the receipt does not say anything of."""
    judged = evidence.frozen.sources
    for label, digest in sorted(judged.items()):
        if label not in receipt.sources:
            yield "receipt-other-source", f"it does not say which {label} was measured"
        elif receipt.sources[label] != digest:
            yield "receipt-other-source", f"{label} is another than the one that was judged"
    if not judged:
        yield "receipt-other-source", "no source was judged"


def _other_program(evidence: Evidence, receipt: Receipt) -> Iterator[tuple[str, str]]:
    """Where the same program was compiled by the same JAX without the device, its digest is known."""
    if receipt.part != PROGRAM:
        return
    told = next((each.program for each in receipt.programs if each.role == "candidate"), "")
    for each in evidence.compiled:
        same = (each.target, each.part, each.side, each.dtype, each.compilers.get("jax"), encode(each.mode))
        mine = (receipt.target, PROGRAM, "candidate", receipt.dtype, receipt.versions.get("jax"), encode(receipt.mode))
        same_choice = (each.dims, each.configuration) == (receipt.dims, receipt.configuration)
        if same == mine and same_choice and told and each.program and each.program != told:
            yield "receipt-other-program", "the program that was timed is not the one that was compiled"


def _dtypes(evidence: Evidence) -> list[str]:
    return [dtype_text(binding) for binding in evidence.frozen.audit.dtype_bindings()]
