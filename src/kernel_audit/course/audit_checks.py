"""What an audit found, as promises of a model file: the records speak, nothing is judged again."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from kernel_audit.contract import Audit
from kernel_audit.course.promises import Check, Wanted
from kernel_audit.decision import decide, exit_code
from kernel_audit.evidence import Evidence
from kernel_audit.records import CaptureRecord, Cell, RefusalCheck

_FAMILIES = {
    "fresh": "values drawn after the file was loaded",
    "non-finite": "NaN and infinities",
    "signed-zeros": "zeros of both signs",
    "cancellation": "sums that cancel, exactly or nearly",
    "ties": "halfway values: one cast at the end",
    "overflow": "sums that overflow",
    "subnormals": "subnormal numbers",
}
_INVARIANTS: tuple[tuple[str, Callable[[Cell], bool]], ...] = (
    ("the same input gives the same bytes again", lambda cell: cell.repeatable is False),
    ("its operands hold the same bytes after the call", lambda cell: cell.inputs_unchanged is False),
    ("permuted rows give permuted rows", lambda cell: cell.judged and cell.permutation_holds is False),
    ("no two accesses race", lambda cell: bool(cell.races)),
)
_PROGRAMS: tuple[tuple[str, Callable[[CaptureRecord], bool]], ...] = (
    ("a Pallas kernel computes the result (no-kernel)", lambda each: not each.kernels),
    (
        "the result depends on the kernel (kernel-unused)",
        lambda each: bool(each.kernels) and each.live_kernels == 0,
    ),
    ("traced again it is the same program (retrace-differs)", lambda each: each.retrace_same is False),
    (
        "it is the same program whatever the backend (backend-dependent)",
        lambda each: each.as_cpu_same is False and each.retrace_same is not False,
    ),
    (
        "the kernel alone calculates, what is outside of it moves values (calculates-outside)",
        lambda each: bool(each.outside),
    ),
    ("its kernel writes to no operand", lambda each: any(kernel.written_inputs for kernel in each.kernels)),
    ("it donates no operand", lambda each: bool(each.donated)),
)
TRACED = "under jax.jit an operand is a jax.core.Tracer and has no device yet: let it pass"
At = dict[str, str]


def audit_checks(wanted: Wanted, audit: Audit, evidence: Evidence, at: At, names: dict[str, list[str]]) -> list[Check]:
    """A check for each promise that the audit looks at. `at` gives file and line of what programs raised, by program key;
    `names` what a helpful refusal would say.
    """
    found = [*_values(wanted, evidence, at), *_invariants(wanted, evidence), *_programs(wanted, evidence)]
    found += [_refusal(wanted, each, names.get(each.name, [])) for each in evidence.refusals]
    decision = decide(evidence)
    if exit_code(decision) and not any(each.seen for each in found):  # every face of the engine gives one verdict
        found.append(Check(wanted.stage, f"{wanted.name} keeps the contract {audit.name}", decision.summary))
    return found


def _values(wanted: Wanted, evidence: Evidence, at: At) -> Iterator[Check]:
    groups: dict[str, list[Cell]] = {}
    for cell in sorted(evidence.cells, key=lambda each: (each.family in _FAMILIES, _kind(each))):
        groups.setdefault(_kind(cell), []).append(cell)
    for kind, cells in groups.items():
        yield Check(wanted.stage, f"{wanted.name}, {kind}", _seen_in(cells, at, evidence))


def _kind(cell: Cell) -> str:
    block = cell.configuration.get("block", [1, 1])
    if cell.family in _FAMILIES:
        return f"{cell.dtype}: {_FAMILIES[cell.family]}"
    m, n = cell.dims["m"], cell.dims["n"]
    if m % block[0] or n % block[1]:
        where = "a single row or column" if min(m, n) == 1 else "tails"
    else:
        where = "whole blocks, " + ("square grid" if m // block[0] == n // block[1] else "rectangular grid")
    return f"values, {cell.dtype}, block {block[0]}x{block[1]}: {where}"


def _seen_in(cells: list[Cell], at: At, evidence: Evidence) -> str:
    bad = [each for each in cells if each.outcome not in ("agrees", "recorded")]
    if not bad:
        return ""
    first = min(bad, key=lambda each: math.prod(each.dims.values()))
    where = f"{len(bad)} of {len(cells)} cells, first {first.id}"
    if first.outcome == "differs" and first.differing_first:
        place = first.differing_first[0]
        return f"{where}: at position {place.position} expected {place.expected}, got {place.actual}"
    program = next((each.program for each in evidence.frozen.plan.cells if each.id == first.id), "")
    place = f" ({at[program]})" if at.get(program) else ""
    words = {"refused": "raised", "differs": first.code or "differs"}.get(first.outcome, first.outcome)
    return f"{where}: {words} {first.note}{place}"


def _invariants(wanted: Wanted, evidence: Evidence) -> Iterator[Check]:
    ran = [each for each in evidence.cells if each.output_digest is not None]
    for promise, broken in _INVARIANTS if ran else ():
        bad = [each.id for each in ran if broken(each)]
        yield Check(wanted.stage, f"{wanted.name}: {promise}", _counted(bad, len(ran), "cells"))


def _programs(wanted: Wanted, evidence: Evidence) -> Iterator[Check]:
    programs = [each for each in evidence.programs if each.side == "candidate"]
    if not programs:
        return
    for promise, broken in _PROGRAMS:
        bad = [f"{', '.join(each.operands)} {each.note}".strip() for each in programs if broken(each)]
        yield Check(wanted.stage, f"{wanted.name}: {promise}", _counted(bad, len(programs), "programs"))
    yield Check(
        wanted.stage, f"{wanted.name}: {_LAYOUT[wanted.name]}", _first(_layout(wanted.name, each) for each in programs)
    )
    if wanted.name == "pipelined_axpy":
        promise = "emit_pipeline has the slots asked for: `buffers` an input, two the output"
        yield Check(wanted.stage, f"{wanted.name}: {promise}", _first(map(_slots, programs)))


def _counted(bad: list[str], of: int, what: str) -> str:
    return f"{len(bad)} of {of} {what}, first {bad[0]}" if bad else ""


def _first(texts: Iterator[str]) -> str:
    return next((each for each in texts if each), "")


_LAYOUT = {
    "blocked_axpy": "one program for each block asked for, the ceiling of shape over block",
    "fused_bias_relu": "one program for each block asked for, and a BlockSpec of its own for the bias",
    "pipelined_axpy": "the outer call holds whole arrays, without a grid of its own",
}


def _layout(name: str, program: CaptureRecord) -> str:
    """What is wrong with grid and blocks of a program's kernel."""
    if len(program.kernels) != 1:
        return f"{len(program.kernels)} kernels at {', '.join(program.operands)}, expected 1" if program.kernels else ""
    kernel, block = program.kernels[0], program.configuration["block"]
    about = f"at {program.operands[0]}, block {block}: "
    if name == "pipelined_axpy":
        return "" if math.prod(kernel.grid) == 1 else f"{about}expected no grid, got {kernel.grid}"
    if math.prod(kernel.grid) != _blocks_of(program):
        return f"{about}expected {_blocks_of(program)} programs, got grid {kernel.grid}"
    if kernel.blocks[-1][-2:] != block:
        return f"{about}the result's block is {kernel.blocks[-1]}"
    if name == "fused_bias_relu" and kernel.blocks[0] == kernel.blocks[1]:
        return f"{about}matrix and bias both have blocks of {kernel.blocks[0]}"
    return ""


def _slots(program: CaptureRecord) -> str:
    """What is wrong with the slots of an emitted pipeline. A single block has none where JAX simplifies it away."""
    if _blocks_of(program) == 1 or len(program.kernels) != 1:
        return ""
    block, buffers = program.configuration["block"], program.configuration["buffers"]
    # One slot is none of a pipeline's, which has two or more: a scratch of the author's own has the same shape.
    found = sorted(each[0] for each in program.kernels[0].allocations if each[1:] == block and each[0] > 1)
    wanted = sorted([buffers, buffers, 2])
    if found == wanted:
        return ""
    return f"at {program.operands[0]}, buffers={buffers}: expected slots {wanted} of {block}, got {found or 'none'}"


def _blocks_of(program: CaptureRecord) -> int:
    shape = [int(each) for each in program.operands[0].partition("[")[2].rstrip("]").split(",")]
    return math.prod(-(-size // extent) for size, extent in zip(shape, program.configuration["block"], strict=True))


def _refusal(wanted: Wanted, check: RefusalCheck, names: list[str]) -> Check:
    if check.name == "door":
        promise = f'{wanted.name}: mode="tpu" raises {check.promised} here'
    elif check.name == "door-opened":
        promise = f'{wanted.name}: mode="tpu" is compiled for the target, interpret=False'
    elif check.name == "door-unplaced":
        promise = f'{wanted.name}: mode="tpu" raises {check.promised} for operands that do not lie on a TPU'
    elif check.name == "door-closed":
        promise = f"{wanted.name} runs here in its default mode"
    else:
        promise = f"{wanted.name} refuses {check.name} with {check.promised}"
    if check.outcome in ("refused", "runs"):
        missing = [each for each in names if each not in check.message]
        return Check(wanted.stage, promise, note=f"its message could name {missing[0]}" if missing else "")
    if check.outcome == "simulates":
        return Check(wanted.stage, promise, f"interpret={check.message}")
    if check.outcome == "raises-on-target":
        hint = f"; {TRACED}" if "Concretization" in check.raised or "Tracer" in check.message else ""
        return Check(wanted.stage, promise, f"on a TPU it raised {check.raised}: {check.message}{hint}")
    if check.outcome in ("accepted", "wrong-exception", "does-not-run"):
        return Check(
            wanted.stage, promise, f"raised {check.raised}: {check.message}" if check.raised else "nothing was raised"
        )
    return Check(wanted.stage, promise, f"{check.outcome} {check.message}")
