"""Findings that records of kernels and compilations must have, since their own figures say so; and none that these deny."""

from __future__ import annotations

from collections.abc import Iterator

from kernel_audit.records import CompiledRecord, Finding, KernelInspection

_OWN_STAGES = ("guard", "candidate")
_CANDIDATE = "candidate"
_REFUSALS = frozenset({"compiler-refuses", "compiler-refuses-baseline", "candidate-raises", "baseline-raises"})
_OUT_OF_RANGE = ("block-index-in-elements", "block-out-of-range")
_NOT_IN_PROGRAM = "kernel-not-in-program"


def kernel_contradictions(kernel: KernelInspection) -> Iterator[str]:
    """Blocks that nobody writes, or that lie outside, without the finding; where the counts alone are certain."""
    codes = {each.code for each in kernel.findings}
    owned = kernel.ownership
    if owned.out_of_range and not codes.intersection(_OUT_OF_RANGE):
        yield f"{owned.out_of_range} programs are out of range, and no finding says so"
    if owned.uncovered and _whole_result(kernel) and not codes & {"block-uncovered", _NOT_IN_PROGRAM}:
        yield f"{owned.uncovered} blocks are written by no program, and no finding says so"
    if not owned.uncovered and "block-uncovered" in codes and _whole_result(kernel):
        yield "a finding says that blocks are uncovered, and none is"


def _whole_result(kernel: KernelInspection) -> bool:
    """One result that no operand shares and nothing is cropped from: each of its blocks must be written."""
    results = [each for each in kernel.mappings if each.role == "output"]
    shown = kernel.owner_map
    cropped = shown is not None and shown.logical_shape != shown.shape
    return len(results) < 2 and not kernel.aliases and not cropped


def compiled_contradictions(record: CompiledRecord, targets: list[str] | None) -> Iterator[str]:
    """A verdict without its finding, a kernel that is gone, spills; `targets` are the audit's."""
    codes = {each.code for each in record.findings}
    if record.declared != (targets is None or record.target in targets):
        yield f"declared is {record.declared}, and the audit is for {'any target' if targets is None else targets}"
    wanted = _wanted(record)
    for code in sorted(wanted - codes):
        yield f"{_why(code, record)}, and no finding {code!r} says so"
    for code in sorted(codes & (_REFUSALS | {"not-compiled"}) - wanted):
        yield f"a finding {code!r}, and accepted is {record.accepted}"
    for kernel in record.kernels if record.accepted else []:
        if kernel.found == _told(record.findings, kernel.path):
            place = "in" if kernel.found else "not in"
            yield f"kernel {kernel.path!r} is {place} the compiled program, and its findings say otherwise"


def _wanted(record: CompiledRecord) -> set[str]:
    if record.accepted is None:
        return {"not-compiled"}
    candidate = record.side == _CANDIDATE
    if record.accepted:
        return {"kernel-spills"} if candidate and record.kernels and record.spills else set()
    if not record.declared or record.reason is None:
        return set()
    if record.reason.stage in _OWN_STAGES:
        return {"candidate-raises" if candidate else "baseline-raises"}
    return {"compiler-refuses" if candidate else "compiler-refuses-baseline"}


def _why(code: str, record: CompiledRecord) -> str:
    return f"{record.spills} spills" if code == "kernel-spills" else f"accepted is {record.accepted}"


def _told(findings: list[Finding], path: str) -> bool:
    return any(each.code == _NOT_IN_PROGRAM and f"({path})" in each.text for each in findings)
