"""The rules: each a small pure function from evidence to findings. No JAX, no clock, no file."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

from kernel_audit.decision.finding import finding
from kernel_audit.decision.profile import profile_findings
from kernel_audit.decision.reasons import reasons
from kernel_audit.decision.without_device import compiler_findings, read_faults
from kernel_audit.decision.workload import processes_findings, reference_findings, step_findings
from kernel_audit.evidence import Evidence
from kernel_audit.records import CaptureRecord, Cell, Control, Finding, RefusalCheck

Rule = Callable[[Evidence], list[Finding]]

_DEATHS = ("crashed", "timed-out", "out-of-memory")
_OUTCOME_CODES = {
    "refused": "refused-valid-input",
    "raised": "raised",
    "import-failed": "import-failed",
    "forged-output": "forged-output",
    "tampered": "tampered",
}
_UNTRIED = (*_DEATHS, "forged-output", "tampered", "import-failed", "not-captured")
_REFUSAL_CODES = {
    "accepted": "refusal-missing",
    "wrong-exception": "refusal-wrong-exception",
    "value-not-named": "refusal-unnamed",
    # of the candidate's own target mode, traced as if there were a target
    "simulates": "simulation-in-target-mode",
    "raises-on-target": "target-mode-raises",
    "no-kernel": "no-kernel",
    "kernel-unused": "kernel-unused",
    # of a call without the keywords of the door
    "does-not-run": "does-not-run-here",
}


def wrong_values(evidence: Evidence) -> list[Finding]:
    """Judged cells that differ, where some baseline keeps the promise."""
    by_code: dict[str, list[Cell]] = defaultdict(list)
    for cell in evidence.cells:
        if cell.judged and cell.outcome == "differs" and _baseline_keeps(cell):
            by_code[cell.code or "retrace-differs"].append(cell)
    return [_about_cells(code, cells) for code, cells in sorted(by_code.items())]


def broken_by_all(evidence: Evidence) -> list[Finding]:
    """Judged cells that differ where every baseline does too."""
    cells = [each for each in evidence.cells if each.judged and each.outcome == "differs" and not _baseline_keeps(each)]
    return [_about_cells("baseline-breaks-promise", cells)] if cells else []


def other_outcomes(evidence: Evidence) -> list[Finding]:
    """Cells without a result because of what the candidate did."""
    by_code: dict[str, list[Cell]] = defaultdict(list)
    for cell in evidence.cells:
        if cell.outcome in _OUTCOME_CODES:
            by_code[_OUTCOME_CODES[cell.outcome]].append(cell)
        if cell.outcome in _DEATHS:
            by_code[cell.outcome if _baseline_keeps(cell) else "environment-failed"].append(cell)
        if cell.outcome == "unjudged":
            by_code["oracle-failed"].append(cell)
        if cell.outcome == "not-captured":
            by_code["not-captured"].append(cell)
    return [_about_cells(code, cells) for code, cells in sorted(by_code.items())]


def broken_invariants(evidence: Evidence) -> list[Finding]:
    """What must hold of every run, whatever its values."""
    ran = [each for each in evidence.cells if each.output_digest is not None]
    broken = {
        "not-repeatable": [each for each in ran if each.repeatable is False],
        "inputs-changed": [each for each in ran if each.inputs_unchanged is False],
        "permutation-differs": [each for each in ran if each.judged and each.permutation_holds is False],
        "race-detected": [each for each in ran if each.races],
    }
    return [_about_cells(code, cells) for code, cells in broken.items() if cells]


def program_faults(evidence: Evidence) -> list[Finding]:
    """What reading the captured programs shows."""
    programs = [each for each in evidence.programs if each.side == "candidate"]
    broken = {
        "no-kernel": [each for each in programs if not each.kernels],
        "kernel-unused": [each for each in programs if each.kernels and each.live_kernels == 0],
        "retrace-differs": [each for each in programs if each.retrace_same is False],
        "backend-dependent": [
            each for each in programs if each.as_cpu_same is False and each.retrace_same is not False
        ],
        "writes-input": [each for each in programs if any(kernel.written_inputs for kernel in each.kernels)],
        "donates-input": [each for each in programs if each.donated],
        "calculates-outside": [each for each in programs if each.outside],
    }
    found = []
    for code, faulty in broken.items():
        if faulty:
            first = faulty[0]
            text = f"{len(faulty)} of {len(programs)} programs, first {', '.join(first.operands)}"
            found.append(finding(code, f"{text}: {first.note}" if first.note else text, [each.key for each in faulty]))
    return found


def broken_refusals(evidence: Evidence) -> list[Finding]:
    """Promised refusals that did not come, and the candidate's own door to a target."""
    found = []
    untried: dict[str, list[RefusalCheck]] = defaultdict(list)
    for check in evidence.refusals:
        if check.outcome in _UNTRIED:
            untried[check.outcome].append(check)
        elif check.outcome not in ("refused", "runs"):
            found.append(finding(_refusal_code(check), _refusal_text(check), [check.name]))
    for code, checks in sorted(untried.items()):
        names = [each.name for each in checks]
        text = f"{len(checks)} refusals could not be tried, first {names[0]}: {checks[0].message}"
        found.append(finding(code, text[:300], names))
    return found


REFUSAL_OUTCOMES = frozenset({"refused", "runs", *_UNTRIED, *_REFUSAL_CODES})


def _refusal_code(check: RefusalCheck) -> str:
    if check.name == "door-unplaced" or (check.name == "door" and check.outcome == "accepted"):
        return "target-door-open"
    return _REFUSAL_CODES[check.outcome]


def _refusal_text(check: RefusalCheck) -> str:
    said = f"raised {check.raised}: {check.message}" if check.raised else check.message or "raised nothing"
    return f"{check.name}: promised {check.promised}, {said}"[:300]


def controls_on_the_wrong_side(evidence: Evidence) -> list[Finding]:
    """Controls that the comparison put on the wrong side, or could never tell apart."""
    by_name: dict[str, list[Control]] = defaultdict(list)
    for control in evidence.controls:
        by_name[control.name].append(control)
    found = []
    for name, controls in sorted(by_name.items()):
        wrong = [each for each in controls if each.outcome not in (each.expected, "not-applicable")]
        if wrong:
            code = "control-accepted" if wrong[0].expected == "rejected" else "oracle-rejected"
            code = "baseline-rejected" if name.startswith("baseline:") else code
            places = ", ".join(dict.fromkeys(f"{each.fixture} {each.dtype}" for each in wrong[:3]))
            text = f"{name}: {len(wrong)} of {len(controls)}, first at {places} {wrong[0].reason}".rstrip()
            found.append(finding(code, text, [f"{name}@{each.fixture}" for each in wrong]))
        elif name == "zeros" and all(each.outcome == "not-applicable" for each in controls):
            found.append(finding("control-never-applied", f"{name}: equals the oracle at every fixture", [name]))
    return found


def nothing_judged(evidence: Evidence) -> list[Finding]:
    """An audit that compared nothing has shown nothing."""
    if any(each.judged and each.outcome in ("agrees", "differs") for each in evidence.cells):
        return []
    if any(reasons()[each.code].effect in ("revise", "forbid") for each in other_outcomes(evidence)):
        return []  # what hinders the comparison is said already
    return [finding("nothing-judged", f"{len(evidence.cells)} cells, none compared under a promise")]


def tails_missing(evidence: Evidence) -> list[Finding]:
    """Whether some judged fixture does not divide into the blocks of the program that ran it."""
    programs = {each.digest: each for each in evidence.programs if each.side == "candidate"}
    blocks = {digest: _blocks(each) for digest, each in programs.items()}
    judged = [each for each in evidence.cells if each.judged and blocks.get(each.program)]
    if not judged or any(
        _leaves_a_tail(each.shape, blocks[each.program]) if each.shape else _cuts_a_tail(programs[each.program])
        for each in judged
    ):
        return []
    extents = sorted({tuple(block) for each in judged for block in blocks[each.program]})
    return [finding("divisible-only", f"every shape divides into blocks of its program, such as {list(extents[0])}")]


def _blocks(program: CaptureRecord) -> list[list[int]]:
    """Blocks of operands and results; those of an emitted pipeline are buffers, with their slots first."""
    found = [block for kernel in program.kernels for block in kernel.allocations]
    for kernel in program.kernels:
        # A grid of one program has whole arrays for blocks, without tails; a grid of none leaves out what it should cover.
        found += kernel.blocks if math.prod(kernel.grid) != 1 else []
    return [block[-2:] for block in found if any(extent > 1 for extent in block[-2:])]


def _cuts_a_tail(program: CaptureRecord) -> bool:
    """Of a program whose result is one number: whether an operand leaves a tail in the kernel's block at its place."""
    shapes = [
        [int(size) for size in each.rpartition("[")[2].rstrip("]").split(",") if size] for each in program.operands
    ]
    return any(
        len(shape) == len(block) and _leaves_a_tail(shape, [block])
        for kernel in program.kernels
        if math.prod(kernel.grid) != 1
        for shape, block in zip(shapes, kernel.blocks, strict=False)
    )


def _leaves_a_tail(shape: list[int], blocks: list[list[int]]) -> bool:
    aligned = [zip(reversed(shape), reversed(block), strict=False) for block in blocks]
    return any(extent > 1 and size % extent for sides in aligned for size, extent in sides)


def target_missing(evidence: Evidence) -> list[Finding]:
    """What no interpreter can settle."""
    audit = evidence.frozen.audit
    found = [
        finding(
            "interpreter-blind-spots",
            "values only: dot precision on a matrix unit, on-chip random numbers, memory limits, layouts and time are not "
            "modelled",
        )
    ]
    targets = declared_targets(evidence)
    if targets and evidence.receipts:
        pass  # each regime says what it lacks
    elif targets:
        scope = ", ".join(targets)
        found.append(finding("no-target-receipt", f"nothing was run on {scope}", scope=scope))
    else:
        found.append(finding("no-target-declared", "targets=[]: no device could settle what the kernel is worth"))
    if audit.worth.step is None and audit.workload is None:
        found.append(finding("no-step-named", f"worth: {audit.worth.objective}, in no step"))
    return found


def part_not_placed(evidence: Evidence) -> list[Finding]:
    """Whether the audit places the kernel in a workload: a step and the part of it, or neither."""
    audit = evidence.frozen.audit
    step, part = audit.worth.step, audit.part
    if audit.workload is not None:
        step = audit.workload.step.text
    if bool(step) == bool(part):
        return []
    return [finding("part-not-placed", f"part {part!r} of no step" if part else f"step {step!r}, no part of it named")]


def declared_targets(evidence: Evidence) -> list[str]:
    """The targets that the audit names; by what the kernels are written with where it names none."""
    stated = evidence.frozen.audit.targets
    if stated is not None:
        return list(stated)
    platforms = {each.platform for each in evidence.kernels}
    return ["gpu:h200"] if platforms == {"gpu"} else ["tpu:v5e"]


RULES: tuple[Rule, ...] = (
    wrong_values,
    broken_by_all,
    other_outcomes,
    broken_invariants,
    program_faults,
    broken_refusals,
    controls_on_the_wrong_side,
    nothing_judged,
    tails_missing,
    read_faults,
    compiler_findings,
    profile_findings,
    reference_findings,
    step_findings,
    processes_findings,
    target_missing,
    part_not_placed,
)


def _baseline_keeps(cell: Cell) -> bool:
    # Cells of unjudged fixtures have no baseline verdict: there the baseline's survival is what counts.
    return cell.baseline_outcome in ("agrees", None)


def _about_cells(code: str, cells: list[Cell]) -> Finding:
    first = cells[0]
    text = f"{len(cells)} cells, first {first.id}"
    if first.differing_first and first.outcome == "differs":
        where = first.differing_first[0]
        text += f": at {where.position} {where.actual} instead of {where.expected}"
    elif first.note:
        text += f": {first.note}"
    return finding(code, text, [each.id for each in cells])
