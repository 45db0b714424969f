"""What must hold of records that needed no device: kernels that were read, programs that were compiled."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from kernel_audit.evidence import layout
from kernel_audit.evidence.fault import INCONSISTENT, Fault
from kernel_audit.evidence.frozen import Evidence
from kernel_audit.evidence.implied import compiled_contradictions, kernel_contradictions
from kernel_audit.records import CompiledRecord, KernelInspection, device_of, known_devices

_UNREAD = re.compile(r"the kernels of (\d+) programs could not be read")  # as the environment says it
TOLERANCE = 1e-9  # of a quotient of two recorded figures


def kernel_faults(evidence: Evidence) -> Iterator[Fault]:
    """Kernels of unknown programs, and counts that contradict each other."""
    candidate = {each.key: each for each in evidence.programs if each.side == "candidate"}
    for each in evidence.kernels:
        program = candidate.get(each.program.partition("/")[0])
        if program is None:
            yield _fault(layout.KERNELS, f"kernel {each.path!r} is of the unknown program {each.program!r}")
        elif "/" not in each.program and each.digest not in {kernel.digest for kernel in program.kernels}:
            yield _fault(layout.KERNELS, f"kernel {each.path!r} of {each.program!r} is not one that was captured")
        for text in _within_kernel(each):
            yield _fault(layout.KERNELS, f"kernel {each.path!r} of {each.program!r}: {text}")
    yield from _unread_faults(evidence)


def _unread_faults(evidence: Evidence) -> Iterator[Fault]:
    """Each kernel that was captured was read; programs that could not be read are as many as the environment says."""
    read = {(each.program, each.path) for each in evidence.kernels}
    unread = []
    for program in [each for each in evidence.programs if each.side == "candidate"]:
        missing = [each.path for each in program.kernels if (program.key, each.path) not in read]
        if missing and len(missing) == len(program.kernels):
            unread.append(program.key)
        elif missing:
            yield _fault(layout.KERNELS, f"kernel {missing[0]!r} of {program.key!r} was captured, and has no record")
    said = [_UNREAD.match(each) for each in evidence.environment.not_run]
    if len(unread) > sum(int(each.group(1)) for each in said if each):
        text = f"no record of the kernels of {len(unread)} programs, first {unread[0]!r}, and the environment does not say why"
        yield _fault(layout.KERNELS, text)


def _within_kernel(kernel: KernelInspection) -> Iterator[str]:
    if kernel.programs is not None and -1 not in kernel.grid and kernel.programs != math.prod(kernel.grid):
        yield f"{kernel.programs} programs in a grid of {kernel.grid}"
    moved, clipped, floor = kernel.bytes.moved, kernel.bytes.clipped, kernel.bytes.floor
    for name, less, more in (("clipped", clipped, moved), ("floor", floor, clipped)):
        if less is not None and more is not None and less > more:
            yield f"its {name} bytes, {less}, are more than what it is a part of, {more}"
    if (kernel.level, kernel.provenance) != ("traced", "derived"):
        yield f"claims to be {kernel.level!r}, {kernel.provenance!r}; it was read"
    yield from kernel_contradictions(kernel)


def compiled_faults(evidence: Evidence) -> Iterator[Fault]:
    """Sides that the audit does not have, verdicts without a reason, and floors that do not follow from their figures."""
    audit = evidence.frozen.audit
    sides = {"candidate", *(each.name for each in audit.baselines)}
    for line, each in enumerate(evidence.compiled, start=1):
        about = f"{each.target}, {each.side}, {each.dtype}"
        if each.side not in sides:
            yield _fault(layout.COMPILED, f"{about}: an unknown side", line)
        if each.accepted is not True and each.reason is None:
            yield _fault(layout.COMPILED, f"{about}: not accepted, for no reason", line)
        if each.accepted is True and each.reason is not None:
            yield _fault(layout.COMPILED, f"{about}: accepted, with a reason to refuse it", line)
        if each.target not in known_devices():
            yield _fault(layout.COMPILED, f"{about}: a target that is not described", line)
            continue
        for text in (*_floor_faults(each), *compiled_contradictions(each, audit.targets)):
            yield _fault(layout.COMPILED, f"{about}: {text}", line)


def _floor_faults(record: CompiledRecord) -> Iterator[str]:
    device = device_of(record.target)
    if record.derived_bytes is not None and record.copy_seconds is not None:
        wanted = record.derived_bytes / device.hbm_bytes_per_s
        if not math.isclose(record.copy_seconds, wanted, rel_tol=TOLERANCE):
            yield f"copy_seconds is {record.copy_seconds!r}, and its bytes give {wanted!r}"
    if record.floor_seconds is None:
        return
    wanted = max(record.copy_seconds or 0.0, record.schedule_seconds or 0.0)
    if not math.isclose(record.floor_seconds, wanted, rel_tol=TOLERANCE):
        yield f"floor_seconds is {record.floor_seconds!r}, and copies and schedule give {wanted!r}"
    if record.provenance != "static model":
        yield f"its floor is said to be {record.provenance!r}; it is a static model"


def _fault(file: str, text: str, line: int | None = None) -> Fault:
    return Fault(file=file, kind=INCONSISTENT, text=text, line=line)
