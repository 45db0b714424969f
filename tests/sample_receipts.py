"""Receipts for the sample audit, from simulated sessions that are said to be measured: what `decide` sees of a device."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import sample_evidence
from sample_evidence import replaced

from kernel_audit.contract import Audit, Worth
from kernel_audit.evidence import Evidence
from kernel_audit.records import (
    FAILURE,
    PROGRAM,
    RECEIPT,
    STALE_WHEN,
    STEP,
    Ceiling,
    Choice,
    Failure,
    PeakMemory,
    Receipt,
    ReceiptDevice,
    ReceiptProgram,
    Session,
    SessionScope,
    TargetCheck,
    TimingVerdict,
    digest_of,
)
from kernel_audit.statistics import achieved, ceiling_per_s, session_verdict
from kernel_audit.timing import Noise, plan_session, simulate_session

TARGET, KIND, JAX = "tpu:v5e", "TPU v5 lite", "0.9.2"
STEP_PLACE = "train.py:step"
DTYPES = ("float32", "bfloat16")
CEILING_SAMPLES = [1e-3, 1.1e-3, 1.2e-3]


def worth(**changes: Any) -> Worth:
    """Step time, by a twentieth."""
    return Worth(**{"objective": "step-time", "margin": 0.05, "step": STEP_PLACE, **changes})


def evidence(**changes: Any) -> Evidence:
    """The sample audit with a step, everything agreeing, and no receipt."""
    base = sample_evidence.agreeing().evidence
    audit = replaced(base.frozen.audit, **{"worth": worth(), "part": "the doubling of the step", **changes})
    return replace(base, frozen=replaced(base.frozen, audit=audit))


@cache
def session(ratio: float, *, noise: float = 0.01, control: float = 1.0, seed: int = 3) -> Session:
    """A session in which the candidate takes `ratio` of the baseline's time, and the control `control` of its own."""
    plan = plan_session(seed=seed, input_sets=1, pairs=96, processes=8, margin=0.05)
    made = simulate_session(Noise("quiet", independent=noise, spread=0.001), plan, ratio=ratio)
    scope = SessionScope(platform="tpu", device_kind=KIND, device_count=1, claims="target", versions={"jax": JAX})
    sides = [
        replaced(each, program=digest_of([each.role, "program"]), exported=digest_of([each.role, "bytes"]))
        for each in made.sides
    ]
    processes = [
        replaced(each, control=replaced(each.control, left_s=[sample * control for sample in each.control.left_s]))
        for each in made.processes
    ]
    return replaced(made, provenance="measured", scope=scope, sides=sides, processes=processes)


@cache
def verdict(ratio: float, noise: float, control: float, seed: int) -> TimingVerdict:
    return session_verdict(session(ratio, noise=noise, control=control, seed=seed))


def receipt(
    audit: Audit,
    *,
    part: str = PROGRAM,
    dtype: str = "float32",
    ratio: float = 0.8,
    noise: float = 0.01,
    control: float = 1.0,
    seed: int = 3,
    number: int = 1,
    of: int = 1,
    peak: tuple[int, int] = (1000, 1000),
    error: tuple[float, float] = (0.1, 0.1),
    compile_s: tuple[float, float] = (2.0, 1.0),
    least_bytes: int = 4096,
    run: str = "run-1",
    **changes: Any,
) -> Receipt:
    """One receipt of a comparison that was won, or lost, by `ratio`."""
    timed = session(ratio, noise=noise, control=control, seed=seed)
    told = verdict(ratio, noise, control, seed)
    copy = Ceiling(
        kind="copy", dtype="float32", work=1e6, samples_s=CEILING_SAMPLES, per_s=ceiling_per_s(1e6, CEILING_SAMPLES)
    )
    sides = ("candidate", "baseline")
    names = {"candidate": "candidate block=8x128", "baseline": "fused"}
    made = Receipt(
        kind=RECEIPT,
        run=run,
        number=number,
        of=of,
        audit=audit.name,
        contract=digest_of(audit),
        sources={label: digest_of_source(label) for label in sample_evidence.SOURCES},
        part=part,
        step=audit.worth.step or "" if part == STEP else "",
        target=TARGET,
        device=ReceiptDevice(platform="tpu", kind=KIND, count=1),
        versions={"jax": JAX},
        dims=audit.declared_dims,
        dtype=dtype,
        precision=audit.measured_precision,
        inputs={"normal-0": digest_of("inputs")},
        programs=[
            ReceiptProgram(
                role=each.role,
                name=names[each.role],
                program=each.program,
                exported=each.exported,
                configuration={"block": [8, 128]} if each.role == "candidate" else {},
            )
            for each in timed.sides
        ],
        candidates=audit.configurations(),
        baselines=[each.name for each in audit.baselines],
        checks=[
            TargetCheck(
                role=role,
                name=names[role],
                fixture="normal-0",
                inputs=digest_of("inputs"),
                how="the oracle",
                elements=9,
                differing=0,
                error_max=error[place],
            )
            for place, role in enumerate(sides)
        ],
        compile_s=dict(zip(sides, compile_s, strict=True)),
        session=timed,
        verdict=told,
        choices=[Choice(role=role, chosen=names[role], yardstick="fused") for role in sides],
        ceilings=[copy],
        achieved=achieved(told, least_bytes=least_bytes, flops=None, dtype=dtype, ceilings=[copy]),
        memory=[
            PeakMemory(role=role, arguments_bytes=0, results_bytes=0, temporary_bytes=each, peak_bytes=each)
            for role, each in zip(sides, peak, strict=True)
        ],
        stale_when=list(STALE_WHEN),
    )
    return replaced(made, **changes)


def digest_of_source(label: str) -> str:
    return sample_evidence.agreeing().evidence.frozen.sources[label]


def receipts(audit: Audit, *, step: dict[str, Any] | None = None, **program: Any) -> list[Receipt]:
    """A whole measurement: each dtype alone and in the step; `step` are other arguments of the step's receipts."""
    places = [(part, dtype) for part in (PROGRAM, STEP) for dtype in DTYPES]
    return [
        receipt(
            audit,
            part=part,
            dtype=dtype,
            number=number,
            of=len(places),
            **({**program, **(step or {})} if part == STEP else program),
        )
        for number, (part, dtype) in enumerate(places, start=1)
    ]


def measured(*, audit: dict[str, Any] | None = None, step: dict[str, Any] | None = None, **program: Any) -> Evidence:
    """Evidence with a whole measurement."""
    base = evidence(**(audit or {}))
    return replace(base, receipts=receipts(base.frozen.audit, step=step, **program))


def changed(base: Evidence, place: int = 0, **changes: Any) -> Evidence:
    """The evidence with one receipt changed."""
    found = [replaced(each, **changes) if index == place else each for index, each in enumerate(base.receipts)]
    return replace(base, receipts=found)


def failed(base: Evidence, place: int, *roles: str, stage: str = "compare", all_lost: bool = True) -> Evidence:
    """The evidence with programs of one receipt failed: a failure record where nothing was timed."""
    failures = [
        Failure(
            stage=stage,
            role=role,
            name="fused" if role == "baseline" else f"{role} block=8x128",
            what="the results differ",
            expected="the results of the contract",
            got="[0, 0]: 0.0 instead of 1.0",
        )
        for role in roles
    ]
    lost = {"kind": FAILURE, "session": None, "verdict": None, "achieved": [], "choices": [], "programs": []}
    return changed(base, place, failures=failures, **(lost if all_lost else {}))
