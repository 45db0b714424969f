"""What must hold between the records of a bundle, whoever wrote them: integrity says only that no byte has changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from kernel_audit.evidence import layout
from kernel_audit.evidence.fault import AMBIGUOUS, INCONSISTENT, MISSING, Fault
from kernel_audit.evidence.frozen import Evidence
from kernel_audit.evidence.manifest import Manifest
from kernel_audit.evidence.profile import profile_faults, trace_faults
from kernel_audit.evidence.receipts import contradictions
from kernel_audit.evidence.without_device import compiled_faults, kernel_faults
from kernel_audit.evidence.workload import workload_faults, workload_names
from kernel_audit.records import (
    DECISIONS,
    LEVELS,
    OUTCOMES,
    Cell,
    CellPlan,
    Decision,
    compiled_name,
    digest_bytes,
    digest_of,
    encode,
    receipt_name,
)

ALTERED = "receipt-altered"
SUBJECTS = ("kernel", "contract", "audit", "environment")
_CONTROL_OUTCOMES = ("accepted", "rejected", "not-applicable")


def consistency(evidence: Evidence, decision: Decision, manifest: Manifest | None = None) -> list[Fault]:
    """Every contradiction between the records of a bundle, each as a Fault at the record; [] where they agree.

    With the manifest, its predicate and the digests of the sources are compared as well.
    """
    checks: tuple[Callable[[Evidence], Iterable[Fault]], ...] = (
        _plan_faults,
        _seed_faults,
        _program_faults,
        _cell_set_faults,
        _cell_faults,
        _control_faults,
        _control_sets,
        _refusal_faults,
        kernel_faults,
        compiled_faults,
        profile_faults,
        workload_faults,
    )
    faults = [each for check in checks for each in check(evidence)]
    faults += _receipt_faults(evidence, decision)
    faults += _decision_faults(evidence, decision)
    if manifest is not None:
        faults += _manifest_faults(evidence, decision, manifest)
        faults += trace_faults(evidence, manifest)
    return faults


def record_names(evidence: Evidence) -> set[str]:
    """What a finding may rest on: cell ids, controls ("zeros", or "zeros@8x128-normal" at one fixture), refusals, fixtures,
    baselines, program keys and digests, names of record files and the audit's own name.
    """
    names = {each.id for each in evidence.cells} | {each.id for each in evidence.frozen.plan.cells}
    names |= {f"{each.name}@{each.fixture}" for each in evidence.controls}
    names |= {each.name for each in evidence.controls} | {each.name for each in evidence.refusals}
    names |= {each.name for each in evidence.frozen.plan.fixtures}
    names |= {each.key for each in evidence.frozen.plan.programs}
    for program in evidence.programs:
        names |= {program.key, program.digest, *(kernel.digest for kernel in program.kernels)}
    names |= {compiled_name(each) for each in evidence.compiled}
    if evidence.profile is not None:
        names |= {layout.PROFILE, *(f"profile/{each.name}" for each in evidence.profile.regions)}
    names |= {receipt_name(each) for each in evidence.receipts}
    audit = evidence.frozen.audit
    names |= {each.name for each in (*audit.baselines, *audit.controls, *audit.refusals, *audit.sequences)}
    return names | workload_names(evidence) | set(layout.REQUIRED) | {layout.WORKLOAD, audit.name}


def _fault(file: str, text: str, line: int | None = None, kind: str = INCONSISTENT) -> Fault:
    return Fault(file=file, kind=kind, text=text, line=line)


def _twice(values: Iterable[str]) -> list[str]:
    return sorted(value for value, count in Counter(values).items() if count > 1)


def _plan_faults(evidence: Evidence) -> Iterator[Fault]:
    plan = evidence.frozen.plan
    keys = [each.key for each in plan.programs]
    fixtures = [each.name for each in plan.fixtures]
    cells = [each.id for each in plan.cells]
    for word, names in (("program", keys), ("fixture", fixtures), ("cell", cells)):
        for name in _twice(names):
            yield _fault(layout.AUDIT, f"the plan has two of {word} {name!r}", kind=AMBIGUOUS)
    for cell in plan.cells:
        if cell.program not in keys:
            yield _fault(layout.AUDIT, f"planned cell {cell.id!r} is of the unknown program {cell.program!r}")
        if cell.fixture not in fixtures:
            yield _fault(layout.AUDIT, f"planned cell {cell.id!r} is on the unknown fixture {cell.fixture!r}")


def _seed_faults(evidence: Evidence) -> Iterator[Fault]:
    """The late seed was committed to before the candidate was loaded: its decimal text has the committed SHA-256."""
    digest = digest_bytes(str(evidence.frozen.late_seed).encode())
    if evidence.frozen.late_seed_commitment.removeprefix("sha256:") != digest.removeprefix("sha256:"):
        yield _fault(layout.AUDIT, "the late seed is not the one that was committed to")


def _program_faults(evidence: Evidence) -> Iterator[Fault]:
    keys = {each.key for each in evidence.frozen.plan.programs}
    sides = {"candidate", *(each.name for each in evidence.frozen.audit.baselines)}
    for name in _twice(f"{each.side} {each.key}" for each in evidence.programs):
        yield _fault(layout.PROGRAMS, f"two records of program {name!r}", kind=AMBIGUOUS)
    for each in evidence.programs:
        if each.key not in keys:
            yield _fault(layout.PROGRAMS, f"a record of the unknown program {each.key!r}")
        if each.side not in sides:
            yield _fault(layout.PROGRAMS, f"program {each.key!r} is of the unknown side {each.side!r}")


def _cell_set_faults(evidence: Evidence) -> Iterator[Fault]:
    planned = {each.id for each in evidence.frozen.plan.cells}
    found = {each.id for each in evidence.cells}
    for name in sorted(planned - found):
        yield _fault(layout.CELLS, f"planned cell {name!r} has no record", kind=MISSING)
    for name in _twice(each.id for each in evidence.cells):
        yield _fault(layout.CELLS, f"two records of cell {name!r}", kind=AMBIGUOUS)
    for line, each in enumerate(evidence.cells, start=1):
        if each.id not in planned:
            yield _fault(layout.CELLS, f"cell {each.id!r} was not planned", line)


def _cell_faults(evidence: Evidence) -> Iterator[Fault]:
    planned = {each.id: each for each in evidence.frozen.plan.cells}
    digests: dict[str, set[str]] = {}
    for each in evidence.programs:
        if each.side == "candidate":
            digests.setdefault(each.key, set()).add(each.digest)
    inputs: dict[str, str] = {}
    for line, cell in enumerate(evidence.cells, start=1):
        if cell.id in planned:
            for text in _against_plan(evidence, cell, planned[cell.id], digests):
                yield _fault(layout.CELLS, f"cell {cell.id!r}: {text}", line)
        for text in _within(cell):
            yield _fault(layout.CELLS, f"cell {cell.id!r}: {text}", line)
        if cell.fixture_digest and inputs.setdefault(cell.fixture, cell.fixture_digest) != cell.fixture_digest:
            yield _fault(layout.CELLS, f"cell {cell.id!r}: other data than other cells of {cell.fixture!r}", line)


def _against_plan(evidence: Evidence, cell: Cell, planned: CellPlan, digests: dict[str, set[str]]) -> Iterator[str]:
    plan = evidence.frozen.plan
    program = next((each for each in plan.programs if each.key == planned.program), None)
    fixture = next((each for each in plan.fixtures if each.name == planned.fixture), None)
    pairs: list[tuple[str, object, object]] = [("fixture", cell.fixture, planned.fixture)]
    if program is not None:
        pairs += [
            ("engine", cell.engine, program.engine),
            ("dtype", cell.dtype, program.dtype),
            ("configuration", cell.configuration, program.configuration),
            ("mode", cell.mode, program.mode),
        ]
        known = digests.get(program.key, set()) | {program.key}
        if cell.program not in known and not (cell.program == "" and program.key not in digests):
            yield f"program {cell.program!r} is not the one captured as {program.key}"
    if fixture is not None:
        pairs += [("family", cell.family, fixture.family), ("dims", cell.dims, fixture.dims)]
        if cell.judged and not fixture.judged:
            yield f"is judged, and the contract promises nothing for fixture {fixture.name!r}"
    results = evidence.frozen.audit.results
    if results and fixture is not None and cell.shape:
        pairs.append(("shape", cell.shape, list(results[0].shape(fixture.dims))))
    for name, found, wanted in pairs:
        if found != wanted:
            yield f"{name} is {found!r}, planned as {wanted!r}"


def _within(cell: Cell) -> Iterator[str]:
    if cell.outcome not in OUTCOMES:
        yield f"unknown outcome {cell.outcome!r}"
    if cell.level not in LEVELS:
        yield f"unknown level {cell.level!r}"
    if cell.outcome == "agrees" and (cell.differing or cell.nonfinite_mismatches):
        yield f"agrees, with {cell.differing} differing and {cell.nonfinite_mismatches} non-finite elements"
    if cell.outcome == "agrees" and cell.differing is None:
        yield "agrees, and nothing was compared"
    if cell.outcome == "recorded" and cell.judged:
        yield "is judged, and its outcome is only recorded"


def _control_faults(evidence: Evidence) -> Iterator[Fault]:
    fixtures = {each.name for each in evidence.frozen.plan.fixtures}
    dtypes = {each.dtype for each in evidence.frozen.plan.programs}
    baselines = {each.name for each in evidence.frozen.audit.baselines}
    for line, each in enumerate(evidence.controls, start=1):
        if each.fixture not in fixtures:
            yield _fault(layout.CONTROLS, f"control {each.name!r} on the unknown fixture {each.fixture!r}", line)
        if each.dtype not in dtypes:
            yield _fault(layout.CONTROLS, f"control {each.name!r} in the unplanned dtype {each.dtype!r}", line)
        if each.name.startswith("baseline:") and each.name.removeprefix("baseline:") not in baselines:
            yield _fault(layout.CONTROLS, f"control {each.name!r} of an unknown baseline", line)
        if each.expected not in _CONTROL_OUTCOMES[:2] or each.outcome not in _CONTROL_OUTCOMES:
            text = f"control {each.name!r} expected {each.expected!r}, came out {each.outcome!r}: unknown words"
            yield _fault(layout.CONTROLS, text, line)
        if each.outcome == "not-applicable" and not each.reason:
            yield _fault(layout.CONTROLS, f"control {each.name!r} is not applicable for no reason", line)


def _control_sets(evidence: Evidence) -> Iterator[Fault]:
    """Every fixture that has controls has the same ones, and cells say of the baselines what the controls say."""
    names: dict[tuple[str, str, bytes], dict[str, str]] = {}
    for each in evidence.controls:
        names.setdefault((each.fixture, each.dtype, encode(each.mode)), {})[each.name] = each.outcome
    everywhere = {name for found in names.values() for name in found}
    for (fixture, dtype, _), found in names.items():
        for missing in sorted(everywhere - set(found)):
            yield _fault(layout.CONTROLS, f"control {missing!r} is missing on fixture {fixture!r}, {dtype}")
    for line, cell in enumerate(evidence.cells, start=1):
        found = names.get((cell.fixture, cell.dtype, encode(cell.mode)), {})
        kept = any(name.startswith("baseline:") and outcome == "accepted" for name, outcome in found.items())
        if found and cell.baseline_outcome is not None and kept != (cell.baseline_outcome == "agrees"):
            text = f"cell {cell.id!r}: baseline_outcome is {cell.baseline_outcome!r}, which its controls contradict"
            yield _fault(layout.CELLS, text, line)


def _refusal_faults(evidence: Evidence) -> Iterator[Fault]:
    promised = {each.name for each in evidence.frozen.audit.refusals}
    for name in _twice(each.name for each in evidence.refusals):
        yield _fault(layout.REFUSALS, f"two records of refusal {name!r}", kind=AMBIGUOUS)
    for line, each in enumerate(evidence.refusals, start=1):
        # The candidate's own door to a target is tried beside the promised refusals, under names of its own.
        if each.name not in promised and not each.name.startswith("door"):
            yield _fault(layout.REFUSALS, f"refusal {each.name!r} is not in the contract", line)


def _receipt_faults(evidence: Evidence, decision: Decision) -> Iterator[Fault]:
    """Every statistic recomputed. A receipt that the decision names as altered carries nothing, and is told there."""
    told = {name for each in decision.findings if each.code == ALTERED for name in each.records}
    names = [receipt_name(each) for each in evidence.receipts]
    for name in _twice(names):
        yield _fault(layout.RECEIPTS, f"two receipts {name!r}", kind=AMBIGUOUS)
    for name, receipt in zip(names, evidence.receipts, strict=True):
        for text in contradictions(receipt, evidence.frozen.audit) if name not in told else ():
            yield _fault(f"{layout.RECEIPTS}/{name}.json", text)


def _decision_faults(evidence: Evidence, decision: Decision) -> Iterator[Fault]:
    audit = evidence.frozen.audit
    if decision.audit != audit.name:
        yield _fault(layout.DECISION, f"decides on {decision.audit!r}, and the audit is {audit.name!r}")
    if decision.decision is not None and decision.decision not in DECISIONS:
        yield _fault(layout.DECISION, f"unknown decision {decision.decision!r}")
    if decision.level not in LEVELS:
        yield _fault(layout.DECISION, f"unknown level {decision.level!r}")
    counted = Counter(each.outcome for each in evidence.cells)
    stated = {outcome: count for outcome, count in decision.counts.items() if count}
    if stated != dict(counted):
        yield _fault(layout.DECISION, f"counts {stated!r}, and the cells are {dict(sorted(counted.items()))!r}")
    known = record_names(evidence)
    for finding in decision.findings:
        if finding.subject not in SUBJECTS:
            yield _fault(layout.DECISION, f"finding {finding.code!r} about the unknown subject {finding.subject!r}")
        for name in finding.records:
            if name not in known:
                yield _fault(layout.DECISION, f"finding {finding.code!r} rests on {name!r}, which no record has")


def _manifest_faults(evidence: Evidence, decision: Decision, manifest: Manifest) -> Iterator[Fault]:
    predicate = manifest.predicate
    for name, stated, wanted in (
        ("decision", predicate.decision, decision.decision),
        ("audit", predicate.audit, evidence.frozen.audit.name),
        ("audit digest", predicate.audit_digest, digest_of(evidence.frozen)),
        ("tool version", predicate.tool_version, evidence.environment.tool_version),
    ):
        if stated != wanted:
            yield _fault(layout.MANIFEST, f"its {name} is {stated!r}, and the records say {wanted!r}")
    prefix = layout.SOURCES + "/"
    digests = manifest.digests()
    held = {name.removeprefix(prefix): digest for name, digest in digests.items() if name.startswith(prefix)}
    for label in sorted(held.keys() | evidence.frozen.sources.keys()):
        if held.get(label) != evidence.frozen.sources.get(label):
            yield _fault(layout.AUDIT, f"source {label!r} in the bundle is not the one that was judged")
