"""Evidence for each reason code of a target, with the decision that comes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import sample_receipts
from sample_evidence import replaced
from sample_receipts import changed, failed, measured, worth

from kernel_audit.evidence import Evidence
from kernel_audit.records import AWAIT, BASELINE, KEEP, REVISE, PairColumns, TimedProcess, digest_of

KEPT = measured()
STEP_PLACES = (2, 3)


def with_session(place: int = 0, **changes: object) -> Evidence:
    """One receipt's session changed, its verdict made again: no contradiction is left."""
    from kernel_audit.statistics import session_verdict

    session = replaced(KEPT.receipts[place].session, **changes)
    verdict = session_verdict(session)
    return changed(KEPT, place, session=session, verdict=verdict, achieved=[])


def with_altered_sample(evidence: Evidence, place: int = 0) -> Evidence:
    session = evidence.receipts[place].session
    first = session.processes[0]
    left = [first.comparison.left_s[0] * 1.5, *first.comparison.left_s[1:]]
    process = replaced(first, comparison=replaced(first.comparison, left_s=left))
    return changed(evidence, place, session=replaced(session, processes=[process, *session.processes[1:]]))


def with_check(role: str) -> Evidence:
    return with_session(processes=with_wrong_results(role))


def with_wrong_results(*roles: str) -> list[TimedProcess]:
    """The processes of a session, one result of each role wrong in the first."""
    first, *rest = KEPT.receipts[0].session.processes
    checks = [replaced(each, differing=1) if each.role in roles else each for each in first.checks]
    return [replaced(first, checks=checks), *rest]


def unchecked() -> Evidence:
    """Nobody looked at what the timed calls gave."""
    return with_session(processes=[replaced(each, checks=[]) for each in KEPT.receipts[0].session.processes])


def with_second_clock() -> Evidence:
    """A device's trace that says the opposite."""
    from kernel_audit.records import ClockRecord

    session = KEPT.receipts[0].session
    clock = ClockRecord(name="trace", kind="device-trace", step_s=1e-9, overhead_s=0.0)

    def told(columns: PairColumns) -> PairColumns:
        return replaced(columns, left_second_s=[2 * each for each in columns.right_s], right_second_s=columns.right_s)

    processes = [replaced(each, comparison=told(each.comparison)) for each in session.processes]
    return with_session(processes=processes, second_clock=clock)


def fewer_configurations() -> Evidence:
    return changed(KEPT, candidates=KEPT.receipts[0].candidates[:1])


def with_worth(step: dict | None = None, program: dict | None = None, **changes: object) -> Evidence:
    return measured(audit={"worth": worth(**changes)}, step=step, **(program or {}))


def divisible() -> Evidence:
    return replace(KEPT, cells=[replaced(each, shape=[16, 256]) for each in KEPT.cells])


def other_program() -> Evidence:
    import sample_without_device

    told = sample_without_device.compiled(KEPT.programs[0])
    audit = KEPT.frozen.audit
    records = [
        replaced(
            told,
            target=sample_receipts.TARGET,
            dtype=dtype,
            dims=audit.declared_dims,
            configuration=configuration,
            compilers={"jax": sample_receipts.JAX},
            program=digest_of("another"),
            mode={},
            accepted=True,
            findings=[],
        )
        for dtype in sample_receipts.DTYPES
        for configuration in audit.configurations()
    ]
    return replace(KEPT, compiled=records)


def simulated() -> Evidence:
    return with_session(provenance="simulated")


def on_a_cpu() -> Evidence:
    scope = replaced(KEPT.receipts[0].session.scope, claims="host-only")
    return with_session(scope=scope)


def no_step() -> Evidence:
    return replace(KEPT, receipts=[replaced(each, of=2) for each in KEPT.receipts[:2]])


def alone(*, sizes: dict[str, int] | None = None, **program: object) -> Evidence:
    """An audit that names no step, and the kernel alone."""
    dimensions = KEPT.frozen.audit.dimensions
    if sizes is not None:
        dimensions = [replaced(each, size=sizes[each.name]) for each in dimensions]
    base = sample_receipts.evidence(worth=worth(step=None), dimensions=dimensions)
    receipts = [
        sample_receipts.receipt(base.frozen.audit, dtype=dtype, number=number, of=2, **program)
        for number, dtype in enumerate(sample_receipts.DTYPES, start=1)
    ]
    return replace(base, receipts=receipts)


def mixed() -> Evidence:
    """Kept in float32, lost in bfloat16."""
    slow = sample_receipts.receipt(KEPT.frozen.audit, part="step", dtype="bfloat16", ratio=1.2, number=4, of=4)
    return replace(KEPT, receipts=[*KEPT.receipts[:3], slow])


# The baseline already runs at the speed of a copy, or above.
LARGE = {"sizes": {"m": 16384, "n": 8192}, "copy_share": 1.2}
# code -> (evidence that shows it, the decision that comes of it)
SHOWN: dict[str, tuple[Callable[[], Evidence], str | None]] = {
    "worth-met": (lambda: KEPT, KEEP),
    "fails-on-target": (lambda: failed(KEPT, 0, "candidate", all_lost=False), REVISE),
    "timed-output-differs": (lambda: with_check("candidate"), REVISE),
    "session-refused": (lambda: with_check("baseline"), AWAIT),
    "faster-than-possible": (lambda: alone(ratio=0.5, **LARGE), AWAIT),
    "session-cannot-tell": (lambda: measured(step={"control": 1.2}), AWAIT),
    "session-doubts": (with_second_clock, KEEP),
    "baseline-fails-on-target": (lambda: failed(KEPT, 0, "baseline"), AWAIT),
    "no-baseline-on-target": (lambda: failed(KEPT, 0, "baseline"), AWAIT),
    "target-failed": (lambda: failed(KEPT, 0, "candidate", "baseline"), AWAIT),
    "no-step-receipt": (no_step, AWAIT),
    "not-all-measured": (fewer_configurations, AWAIT),
    "receipts-left-out": (lambda: replace(KEPT, receipts=KEPT.receipts[1:]), AWAIT),
    "evidence-missing": (lambda: replace(KEPT, cells=KEPT.cells[1:]), AWAIT),
    "correctness-open": (divisible, AWAIT),
    "receipt-altered": (lambda: with_altered_sample(KEPT), AWAIT),
    "receipt-of-a-cpu": (on_a_cpu, AWAIT),
    "receipt-not-measured": (simulated, AWAIT),
    "receipt-other-device": (lambda: changed(KEPT, target="tpu:v4"), AWAIT),
    "receipt-other-source": (lambda: changed(KEPT, sources={"doubling/kernel.py": digest_of("new")}), AWAIT),
    "receipt-other-contract": (lambda: changed(KEPT, contract=digest_of("another")), AWAIT),
    "receipt-other-shape": (lambda: changed(KEPT, dims={"m": 8, "n": 128}, achieved=[]), AWAIT),
    "receipt-other-boundary": (lambda: changed(KEPT, 2, step="train.py:other"), AWAIT),
    "receipt-other-precision": (
        lambda: changed(KEPT, precision={**KEPT.receipts[0].precision, "default_matmul_precision": "highest"}),
        AWAIT,
    ),
    "receipt-other-configuration": (
        lambda: changed(
            KEPT,
            programs=[replaced(each, configuration={"block": [1, 1]}) for each in KEPT.receipts[0].programs],
        ),
        AWAIT,
    ),
    "receipt-other-program": (other_program, AWAIT),
    "worth-undecided": (lambda: measured(step={"ratio": 0.95}), AWAIT),
    "less-than-worth-in-step": (lambda: measured(step={"ratio": 1.1}), BASELINE),
    "less-than-worth-alone": (lambda: alone(ratio=1.1), BASELINE),
    "floor-leaves-too-little": (lambda: alone(ratio=1.0, **LARGE), BASELINE),
    "break-even-too-late": (lambda: with_worth(break_even=10), BASELINE),
    "margin-lost": (
        lambda: with_worth(step={"peak": (2000, 1000)}, not_to_lose={"peak-bytes": 0.1}),
        BASELINE,
    ),
    "margin-undecided": (lambda: with_worth(step={"memory": []}, not_to_lose={"peak-bytes": 0.1}), AWAIT),
    "objective-not-measured": (lambda: with_worth(objective="p99-time"), AWAIT),
    "slower-alone": (lambda: measured(ratio=1.1, step={"ratio": 0.8}), KEEP),
    "dispatcher-unmeasured": (mixed, AWAIT),
}
