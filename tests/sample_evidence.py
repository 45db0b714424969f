"""Sample evidence for tests: a small audit that agrees, the same one with everything that can go wrong, and a large one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import sample_without_device

from kernel_audit.contract import (
    Agreement,
    Audit,
    Baseline,
    Dimension,
    FunctionRef,
    Operand,
    Oracle,
    Precision,
    Refusal,
    Sequence,
    Values,
    Worth,
)
from kernel_audit.evidence import Evidence, FrozenAudit
from kernel_audit.records import (
    AWAIT,
    REVISE,
    CaptureRecord,
    Cell,
    CellPlan,
    Control,
    Criterion,
    Decision,
    Difference,
    Environment,
    Finding,
    Fixture,
    Kernel,
    LeftOut,
    Plan,
    ProgramPlan,
    RefusalCheck,
    Regime,
    digest_bytes,
    digest_of,
)

SOURCES = {"doubling/kernel.py": b"# A kernel.\n\ndef double(x, *, block=8):\n    return x + x\n"}
SEED = 20240607
GAPS = {"float32": 0.0, "bfloat16": 0.025217056274414062}
CRITERIA = ("mathematics", "profiling", "kernel correctness", "target qualification", "decision")


@dataclass(frozen=True)
class Sample:
    """Everything that a bundle is written from."""

    evidence: Evidence
    decision: Decision
    sources: dict[str, bytes] = field(default_factory=lambda: dict(SOURCES))


def replaced(record: Any, **changes: Any) -> Any:
    """A record with some fields changed."""
    return msgspec.structs.replace(record, **changes)


def small_audit(name: str = "doubling") -> Audit:
    """out = 2 x, two dtypes, two configurations, one fixture sequence."""
    return Audit(
        name=name,
        candidate=FunctionRef(file="doubling/kernel.py", name="double"),
        baselines=[
            Baseline(name="fused", function=FunctionRef(file="doubling/kernel.py", name="fused"), strong="one loop")
        ],
        oracle=Oracle(kind="independent", function=FunctionRef(file="doubling/kernel.py", name="oracle")),
        operands=[Operand(name="x", dtype="T", dims=["m", "n"])],
        results=[Operand(name="out", dtype="T", dims=["m", "n"])],
        dimensions=[Dimension(name="m", size=9, vary="any"), Dimension(name="n", size=129, vary="any")],
        dtypes={"T": ["float32", "bfloat16"]},
        tuning={"block": [[8, 128], [16, 256]]},
        precision=Precision(arithmetic="float32", oracle="float32"),
        agreement=Agreement(kind="exact", derivation="one rounding at the end"),
        values=Values(families=["normal"]),
        refusals=[Refusal(name="integers", operands={"x": "int32[9,129]"}, raises="ValueError", names=["int32"])],
        sequences=[Sequence(name="lesson", seed=42, shapes=[{"m": 1, "n": 1}, {"m": 9, "n": 129}])],
        targets=["tpu:v5e"],
        worth=Worth(objective="step_time", margin=0.02),
        prediction="correct everywhere; no faster than the fused baseline",
    )


def small_plan() -> Plan:
    """Two fixtures of a sequence and one of the matrix, each in two dtypes: six cells."""
    sizes = [{"m": 1, "n": 1}, {"m": 9, "n": 129}]
    fixtures = [
        Fixture(name="lesson-1x1", dims=sizes[0], family="normal", seed=42),
        Fixture(name="lesson-9x129", dims=sizes[1], family="normal", seed=42, before=sizes[:1]),
        Fixture(name="9x129-overflow", dims=sizes[1], family="overflow", seed=7, judged=False),
    ]
    programs, cells = [], []
    for fixture in fixtures:
        for dtype in ("float32", "bfloat16"):
            engine = "generic" if fixture.family == "overflow" else "tpu-interpreter"
            program = ProgramPlan(
                key=f"p{len(programs):03d}",
                dims=fixture.dims,
                binding={"T": dtype},
                configuration={"block": [8, 128]},
                engine=engine,
            )
            programs.append(program)
            cell_id = f"{engine}/{fixture.name}/{dtype}/block=8x128"
            cells.append(CellPlan(id=cell_id, program=program.key, fixture=fixture.name))
    left_out = [LeftOut(what="tpu-interpreter 257x513 block=8x128", why="165 programs, more than 64")]
    return Plan(programs=programs, fixtures=fixtures, cells=cells, full_size=24, pairs=10, left_out=left_out)


def environment() -> Environment:
    return Environment(
        tool_version="0.1.0",
        python="3.11.9",
        platform="Linux x86_64, 2 cores",
        versions={"jax": "0.9.2", "jaxlib": "0.9.2", "numpy": "2.4.6"},
        devices=["cpu:0"],
        flags={"XLA_FLAGS": ""},
        command=["kernel-audit", "run", "doubling"],
        isolation={"network": "none", "memory_bytes": 4294967296, "process_group": True},
        oracle="independent",
        not_run=["nothing ran on tpu:v5e: no such device here", "compiled: the target's compiler is not installed"],
    )


def agreeing() -> Sample:
    """All cells agree: await-target-evidence."""
    return _agreeing(small_audit(), small_plan())


def _agreeing(audit: Audit, plan: Plan) -> Sample:
    programs = [capture_record(each) for each in plan.programs]
    digests = {each.key: each.digest for each in programs}
    cells = [agreeing_cell(plan, each, digests[each.program]) for each in plan.cells]
    evidence = Evidence(
        frozen=frozen(audit, plan),
        environment=environment(),
        programs=programs,
        kernels=[sample_without_device.inspection(each) for each in programs],
        cells=cells,
        controls=controls(cells),
        refusals=[
            RefusalCheck(
                name=each.name, promised=each.raises, outcome="refused", raised=each.raises, message="int32 is no float"
            )
            for each in audit.refusals
        ],
    )
    return Sample(evidence, awaiting(evidence))


def frozen(audit: Audit, plan: Plan) -> FrozenAudit:
    return FrozenAudit(
        reference=audit.name,
        audit=audit,
        plan=plan,
        late_seed=SEED,
        late_seed_commitment=digest_bytes(str(SEED).encode()),
        sources={label: digest_bytes(data) for label, data in SOURCES.items()},
    )


def capture_record(program: ProgramPlan) -> CaptureRecord:
    dims = "x".join(str(each) for each in program.dims.values())
    kernel = Kernel(
        path="jit:double/pallas_call#0",
        name="double_kernel",
        primitive="pallas_call",
        digest=digest_of(["kernel", program.dims, program.binding]),
        grid=[2, 2],
        blocks=[[8, 128], [8, 128]],
        allocations=[[2, 8, 128]],
        authored_interpret="False",
        written_inputs=[],
    )
    return CaptureRecord(
        key=program.key,
        side="candidate",
        configuration=program.configuration,
        mode=program.mode,
        operands=[f"{program.dtype}[{dims}]"],
        results=[f"{program.dtype}[{dims}]"],
        digest=digest_of([program.key, program.dims, program.binding, program.configuration]),
        kernels=[kernel],
        donated=[],
        exports={"generic": digest_of(program.key)},
        jax_version="0.9.2",
        simulated_device="TPU v5 lite",
    )


def agreeing_cell(plan: Plan, planned: CellPlan, digest: str) -> Cell:
    program, fixture = plan.program(planned.program), plan.fixture(planned.fixture)
    gap = GAPS[program.dtype] if fixture.judged and max(fixture.dims.values()) > 1 else GAPS["float32"]
    return Cell(
        id=planned.id,
        fixture=fixture.name,
        fixture_digest=digest_of(fixture.name),
        family=fixture.family,
        dims=fixture.dims,
        shape=list(fixture.dims.values()),
        dtype=program.dtype,
        configuration=program.configuration,
        mode=program.mode,
        engine=program.engine,
        judged=fixture.judged,
        outcome="agrees" if fixture.judged else "recorded",
        program=digest,
        output_digest=digest_of([planned.id, "output"]),
        kernel_error_max=0.0,
        kernel_error_ulps=0.0,
        differing=0,
        nonfinite_mismatches=0,
        representation_gap_max=gap,
        gap_input_max=gap * 0.75,
        gap_output_max=gap * 0.25,
        repeatable=True,
        inputs_unchanged=True,
        permutation_holds=True,
        races=False if program.engine == "tpu-interpreter" else None,
        baseline_outcome="agrees",
        actual_backend="cpu",
        simulated_device="TPU v5 lite",
    )


def controls(cells: list[Cell]) -> list[Control]:
    """For each fixture and dtype: the oracle and a baseline accepted, two bad ones rejected or not applicable."""
    found = []
    for fixture, dtype in sorted({(each.fixture, each.dtype) for each in cells if each.judged}):
        exact = dtype == "bfloat16"
        for name, expected, outcome, reason in (
            ("oracle", "accepted", "accepted", ""),
            ("baseline:fused", "accepted", "accepted", ""),
            ("zeros", "rejected", "rejected", "values-differ: 9 elements"),
            ("rounded-early", "rejected", "not-applicable" if exact else "rejected", "returns what the oracle returns"),
        ):
            found.append(
                Control(
                    name=name,
                    fixture=fixture,
                    dtype=dtype,
                    mode={},
                    expected=expected,
                    outcome=outcome,
                    reason=reason if outcome != "accepted" else "",
                    kernel_error_max=0.0 if expected == "accepted" else 1.5,
                    differing=0 if expected == "accepted" else 9,
                )
            )
    return found


def counts(cells: list[Cell]) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in cells:
        found[each.outcome] = found.get(each.outcome, 0) + 1
    return found


def awaiting(evidence: Evidence) -> Decision:
    text = f"all {len(evidence.cells)} cells keep their promise; nothing has run on tpu:v5e"
    review = [Criterion(name=name, verdict="unresolved", text="needs the target", codes=[]) for name in CRITERIA]
    review[2] = Criterion(name=CRITERIA[2], verdict="accept", text="every judged cell agrees with the oracle")
    return Decision(
        audit=evidence.frozen.audit.name,
        decision=AWAIT,
        summary=text,
        findings=[
            Finding(
                code="no-target-evidence",
                subject="environment",
                text="Nothing was executed on the declared target, so its worth is open.",
                scope="tpu:v5e",
                records=["environment.json"],
            )
        ],
        regimes=[Regime(name="default", decision=AWAIT, codes=["no-target-evidence"])],
        review=review,
        level="interpreted",
        levels={
            "traced": f"{len(evidence.programs)} programs, each with its kernel",
            "interpreted": f"{len(evidence.cells)} cells in two interpreters",
        },
        counts=counts(evidence.cells),
        next_command="kernel-audit check doubling --target tpu:v5e",
    )


def failing(name: str = "doubling", note: str = "ended by signal 11") -> Sample:
    """A cell that differs, one that crashed, a race, a refusal that was accepted and a control on the wrong side."""
    base = _agreeing(small_audit(name), small_plan())
    cells = list(base.evidence.cells)
    cells[2] = replaced(
        cells[2],
        outcome="differs",
        kernel_error_max=1.5,
        kernel_error_ulps=12582912.0,
        differing=9,
        differing_first=[
            Difference(leaf=0, position=[row, 128], actual="0.0", expected=repr(1.5 - row)) for row in range(5)
        ],
    )
    cells[3] = replaced(
        cells[3],
        outcome="crashed",
        output_digest=None,
        kernel_error_max=None,
        kernel_error_ulps=None,
        differing=None,
        nonfinite_mismatches=None,
        repeatable=None,
        inputs_unchanged=None,
        permutation_holds=None,
        races=None,
        note=note,
    )
    cells[1] = replaced(cells[1], races=True)
    wrong = replaced(base.evidence.controls[0], outcome="rejected", reason="values-differ: 1 elements")
    evidence = Evidence(
        frozen=base.evidence.frozen,
        environment=base.evidence.environment,
        programs=base.evidence.programs,
        kernels=base.evidence.kernels,
        compiled=[sample_without_device.refused(base.evidence.programs[0])],
        cells=cells,
        controls=[wrong, *base.evidence.controls[1:]],
        refusals=[replaced(base.evidence.refusals[0], outcome="accepted", raised="", message="")],
    )
    findings = [
        Finding(code="values-differ", subject="kernel", text="Last column wrong.", records=[cells[2].id]),
        Finding(code="crashed", subject="kernel", text="The baseline survives this cell.", records=[cells[3].id]),
        Finding(code="control-wrong", subject="audit", text="The oracle itself was rejected.", records=["oracle"]),
    ]
    decision = replaced(
        base.decision,
        decision=REVISE,
        summary="2 of 6 cells break a promise of the contract",
        findings=findings,
        counts=counts(cells),
        next_command=f"kernel-audit explain values-differ {name}",
    )
    return Sample(evidence, decision)
