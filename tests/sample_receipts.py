"""Receipts for the sample audit, from simulated sessions that are said to be measured: what `decide` sees of a device."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import sample_evidence
from sample_evidence import replaced

from kernel_audit.contract import Audit, Worth
from kernel_audit.evidence import Evidence
from kernel_audit.measure.comparison import Comparison, is_large, least_bytes
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
    PilotRatio,
    Receipt,
    ReceiptDevice,
    ReceiptProgram,
    Session,
    SessionScope,
    TargetCheck,
    TimingVerdict,
    digest_of,
)
from kernel_audit.statistics import achieved, ceiling_per_s, pilot_ratio, session_verdict
from kernel_audit.timing import Noise, plan_session, simulate_session

TARGET, KIND, JAX = "tpu:v5e", "TPU v5 lite", "0.9.2"
STEP_PLACE = "train.py:step"
DTYPES = ("float32", "bfloat16")
CEILING_SAMPLES = [1e-3, 1.1e-3, 1.2e-3]
BASE_S = 1e-3  # of the baseline, simulated
CANDIDATES = ("candidate block=8x128", "candidate block=16x256")
BASELINE_NAME = "fused"


def worth(**changes: Any) -> Worth:
    """Step time, by a twentieth."""
    return Worth(**{"objective": "step-time", "margin": 0.05, "step": STEP_PLACE, **changes})


def evidence(**changes: Any) -> Evidence:
    """The sample audit with a step, everything agreeing, and no receipt."""
    base = sample_evidence.agreeing().evidence
    audit = replaced(base.frozen.audit, **{"worth": worth(), "part": "the doubling of the step", **changes})
    return replace(base, frozen=replaced(base.frozen, audit=audit))


@cache
def session(
    ratio: float,
    *,
    noise: float = 0.01,
    control: float = 1.0,
    seed: int = 3,
    margin: float = 0.05,
    floor_s: float = 0.0,
    names: tuple[str, str] = (CANDIDATES[0], BASELINE_NAME),
    pilot: bool = False,
    base_s: float = BASE_S,
) -> Session:
    """A session in which the candidate takes `ratio` of the baseline's time, and the control `control` of its own."""
    pairs, processes = (8, 2) if pilot else (96, 8)
    plan = plan_session(seed=seed, input_sets=1, pairs=pairs, processes=processes, margin=margin)
    made = simulate_session(Noise("quiet", independent=noise, spread=0.001), plan, ratio=ratio, base_s=base_s)
    scope = SessionScope(platform="tpu", device_kind=KIND, device_count=1, claims="target", versions={"jax": JAX})
    sides = [
        replaced(
            each, name=name, program=digest_of([name, "program"]), exported=digest_of([name, "bytes"]), floor_s=floor_s
        )
        for name, each in zip(names, made.sides, strict=True)
    ]
    processes = [
        replaced(each, control=replaced(each.control, left_s=[sample * control for sample in each.control.left_s]))
        for each in made.processes
    ]
    told = {"id": digest_of([names, plan])[7:23], "provenance": "measured", "scope": scope, "sides": sides}
    return replaced(made, **told, processes=processes)


@cache
def chosen_on_pilots(configurations: int) -> tuple[list[Choice], list[Session]]:
    """The first of as many configurations, against the only baseline."""
    names = CANDIDATES[:configurations] if configurations > 1 else ()
    made = [
        session(0.8 + 0.1 * number, seed=100 + number, names=(name, BASELINE_NAME), pilot=True)
        for number, name in enumerate(names)
    ]
    ratios = []
    for name, each in zip(names, made, strict=True):
        ratio, pairs = pilot_ratio(each)
        ratios.append(PilotRatio(name=name, ratio=ratio, pairs=pairs, session=each.id))
    candidate = Choice(role="candidate", chosen=CANDIDATES[0], yardstick=BASELINE_NAME, pilots=ratios)
    return [candidate, Choice(role="baseline", chosen=BASELINE_NAME, yardstick=BASELINE_NAME)], made


@cache
def verdict(ratio: float, **about: Any) -> TimingVerdict:
    return session_verdict(session(ratio, **about))


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
    copy_share: float | None = None,
    base_s: float = BASE_S,
    flops: float | None = None,
    products: tuple[str, ...] = (),
    run: str = "run-1",
    **changes: Any,
) -> Receipt:
    """One receipt of a comparison that was won, or lost, by `ratio`. `copy_share`: the baseline's, of a measured copy.
    `products`: the dtypes whose products were measured."""
    comparison = Comparison(part, audit.declared_dims, {"T": dtype}, {}, ())
    least = least_bytes(audit, comparison)
    work = 1e6 if copy_share is None else least / (copy_share * BASE_S) * CEILING_SAMPLES[1]
    copy = Ceiling(
        kind="copy", dtype="float32", work=work, samples_s=CEILING_SAMPLES, per_s=ceiling_per_s(work, CEILING_SAMPLES)
    )
    ceilings = [copy, *(product_ceiling(each) for each in products)]
    about = {
        "noise": noise,
        "control": control,
        "seed": seed,
        "base_s": base_s,
        "margin": min(max(audit.worth.margin, 0.01), 0.05),
        "floor_s": least / copy.per_s / 1.25 if is_large(audit, comparison) else 0.0,
    }
    timed, told = session(ratio, **about), verdict(ratio, **about)
    choices, pilots = chosen_on_pilots(len(audit.configurations()))
    sides = ("candidate", "baseline")
    names = {"candidate": CANDIDATES[0], "baseline": BASELINE_NAME}
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
        choices=choices,
        pilots=pilots,
        ceilings=ceilings,
        achieved=achieved(told, least_bytes=least, flops=flops, dtype=dtype, ceilings=ceilings),
        memory=[
            PeakMemory(role=role, arguments_bytes=0, results_bytes=0, temporary_bytes=each, peak_bytes=each)
            for role, each in zip(sides, peak, strict=True)
        ],
        stale_when=list(STALE_WHEN),
    )
    return replaced(made, **changes)


def product_ceiling(dtype: str) -> Ceiling:
    """A matrix product, in bfloat16 four times as fast as in others."""
    work = 4e8 if dtype == "bfloat16" else 1e8
    per_s = ceiling_per_s(work, CEILING_SAMPLES)
    return Ceiling(kind="matrix-product", dtype=dtype, work=work, samples_s=CEILING_SAMPLES, per_s=per_s)


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
