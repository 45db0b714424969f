"""Each rule on the least evidence that makes it speak; and every code has a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import sample_evidence
import sample_without_device
import workload_sample
from sample_evidence import replaced
from sample_target_codes import SHOWN

from kernel_audit.contract import Door
from kernel_audit.decision import decide, exit_code, finding, reasons
from kernel_audit.decision.reasons import EFFECTS
from kernel_audit.decision.rules import RULES
from kernel_audit.evidence import Evidence
from kernel_audit.records import AWAIT, REVISE, Control, HostCheck, ProcessesRun, RefusalCheck, StepRun

BASE = sample_evidence.agreeing().evidence
CRITERIA = {"mathematics", "profiling", "kernel-correctness", "target-qualification", "decision"}
SUBJECTS = {"kernel", "contract", "audit", "environment"}


def with_cell(**changes) -> Evidence:
    """The first judged cell changed."""
    return replace(BASE, cells=[replaced(BASE.cells[0], **changes), *BASE.cells[1:]])


def with_program(**changes) -> Evidence:
    return replace(BASE, programs=[replaced(BASE.programs[0], **changes), *BASE.programs[1:]])


def with_refusal(**changes) -> Evidence:
    check = RefusalCheck(**{"name": "integers", "promised": "ValueError", "outcome": "refused", **changes})
    return replace(BASE, refusals=[check])


def with_control(name: str, expected: str, outcome: str) -> Evidence:
    made = Control(
        name=name, fixture="lesson-1x1", dtype="float32", mode={}, expected=expected, outcome=outcome, reason="so"
    )
    others = [each for each in BASE.controls if each.name != name]
    return replace(BASE, controls=[*others, made])


def with_audit(**changes) -> Evidence:
    return replace(BASE, frozen=replaced(BASE.frozen, audit=replaced(BASE.frozen.audit, **changes)))


def lost(outcome: str, **changes) -> Evidence:
    return with_cell(outcome=outcome, output_digest=None, differing=None, repeatable=None, **changes)


def nothing_compared() -> Evidence:
    return replace(BASE, cells=[replaced(each, outcome="not-captured", output_digest=None) for each in BASE.cells])


def divisible() -> Evidence:
    return replace(BASE, cells=[replaced(each, shape=[16, 256]) for each in BASE.cells])


def read_as(code: str) -> Evidence:
    """A kernel in which reading found this."""
    kernel = sample_without_device.inspection(BASE.programs[0], findings=[sample_without_device.static_finding(code)])
    return replace(BASE, kernels=[kernel, *BASE.kernels[1:]])


def compiled_as(code: str) -> Evidence:
    """A program of which compiling told this."""
    found = sample_without_device.static_finding(code)
    return replace(BASE, compiled=[sample_without_device.compiled(BASE.programs[0], findings=[found])])


def writing() -> Evidence:
    return with_program(kernels=[replaced(BASE.programs[0].kernels[0], written_inputs=[0])])


# code -> evidence in which exactly this code comes on top of those of evidence that agrees
MINIMAL: dict[str, Callable[[], Evidence]] = {
    "values-differ": lambda: with_cell(outcome="differs", code="values-differ"),
    "result-shape-differs": lambda: with_cell(outcome="differs", code="result-shape-differs"),
    "result-dtype-differs": lambda: with_cell(outcome="differs", code="result-dtype-differs"),
    "baseline-breaks-promise": lambda: with_cell(
        outcome="differs", code="values-differ", baseline_outcome="values-differ"
    ),
    "refused-valid-input": lambda: lost("refused"),
    "raised": lambda: lost("raised"),
    "import-failed": lambda: lost("import-failed"),
    "forged-output": lambda: lost("forged-output"),
    "tampered": lambda: lost("tampered"),
    "crashed": lambda: lost("crashed"),
    "timed-out": lambda: lost("timed-out"),
    "out-of-memory": lambda: lost("out-of-memory"),
    "environment-failed": lambda: lost("crashed", baseline_outcome="crashed"),
    "oracle-failed": lambda: with_cell(outcome="unjudged"),
    "not-captured": lambda: lost("not-captured"),
    "not-repeatable": lambda: with_cell(repeatable=False),
    "inputs-changed": lambda: with_cell(inputs_unchanged=False),
    "permutation-differs": lambda: with_cell(permutation_holds=False),
    "race-detected": lambda: with_cell(races=True),
    "no-kernel": lambda: with_program(kernels=[]),
    "retrace-differs": lambda: with_program(retrace_same=False, as_cpu_same=False),
    "backend-dependent": lambda: with_program(retrace_same=True, as_cpu_same=False),
    "writes-input": writing,
    "calculates-outside": lambda: with_program(outside=["add"]),
    "donates-input": lambda: with_program(donated=[0]),
    "kernel-unused": lambda: with_program(live_kernels=0),
    "does-not-run-here": lambda: with_refusal(name="door-closed", outcome="does-not-run", raised="ValueError"),
    "refusal-missing": lambda: with_refusal(outcome="accepted"),
    "refusal-wrong-exception": lambda: with_refusal(outcome="wrong-exception", raised="TypeError"),
    "refusal-unnamed": lambda: with_refusal(outcome="value-not-named", raised="ValueError"),
    "target-door-open": lambda: with_refusal(name="door", outcome="accepted"),
    "simulation-in-target-mode": lambda: with_refusal(name="door-opened", outcome="simulates", message="True"),
    "target-mode-raises": lambda: with_refusal(
        name="door-opened", outcome="raises-on-target", raised="ConcretizationTypeError", message="traced (kernel.py:3)"
    ),
    "control-accepted": lambda: with_control("zeros", "rejected", "accepted"),
    "oracle-rejected": lambda: with_control("oracle", "accepted", "rejected"),
    "baseline-rejected": lambda: with_control("baseline:fused", "accepted", "rejected"),
    "control-never-applied": lambda: with_control("zeros", "rejected", "not-applicable"),
    "divisible-only": divisible,
    "no-target-declared": lambda: with_audit(targets=[]),
    "part-not-placed": lambda: with_audit(part="the activation"),
}
READ = (
    *("block-index-in-elements", "block-out-of-range", "block-uncovered", "block-revisited", "parallel-axis-shared"),
    *("result-unwritten", "accumulator-uninitialised", "accumulator-narrow", "operand-unread", "offset-overflow"),
    *("precision-below-contract", "cost-estimate-false", "block-misaligned", "vmem-over-use", "primitive-unsupported"),
    "candidate-reads-backend",
)
COMPILED = (
    "compiler-refuses",
    "compiler-refuses-baseline",
    "candidate-raises",
    "baseline-raises",
    "not-compiled",
    "kernel-not-in-program",
    "compiler-custom-call",
    "kernel-spills",
)


def by_default() -> Evidence:
    """The compiler of a target that the audit does not name refuses."""
    evidence = compiled_as("compiler-refuses")
    audit = replaced(evidence.frozen.audit, targets=None)
    return replace(evidence, frozen=replaced(evidence.frozen, audit=audit))


MINIMAL["default-target-refuses"] = by_default
# What is wrong with a complete step, as its run tells it.
STEPS = (
    *(
        "unweighted-means",
        "count-dropped",
        "sum-for-mean",
        "reduced-over-one-axis",
        "silent-replication",
        "placed-otherwise",
    ),
    *("missing-reduction", "copies-differ", "reduced-twice", "padding-counted", "padding-leak", "stale-weights"),
    *("examples-mispaired", "loss-from-one-shard", "donated-operand-reused", "update-of-wrong-sign", "update-wrong"),
    *("gradient-of-the-local-batch", "step-inexact", "step-wrong", "step-refused", "step-raised", "step-died"),
    "inputs-differ",
)


def stepping(*runs: StepRun, **changes: Any) -> Evidence:
    """Evidence with a record of the complete step."""
    return replace(BASE, workload=workload_sample.record(*runs, **changes))


def step_as(code: str) -> Evidence:
    """A step that is right with a baseline in place, and wrong with the candidate."""
    wrong = workload_sample.run(side="candidate", outcome="wrong", codes=[] if code == "step-wrong" else [code])
    return stepping(workload_sample.run(), wrong)


def processes_as(outcome: str) -> ProcessesRun:
    return replaced(workload_sample.record().processes[0], outcome=outcome)


MINIMAL |= {code: partial(read_as, code) for code in READ} | {code: partial(compiled_as, code) for code in COMPILED}
MINIMAL |= {code: partial(step_as, code) for code in STEPS} | {
    "workload-step-wrong": lambda: stepping(workload_sample.run(outcome="wrong", codes=["sum-for-mean"])),
    "workload-reference-wrong": lambda: stepping(reference=HostCheck(independent=True, rule="", right=False)),
    "only-loss-checked": lambda: stepping(reference=HostCheck(independent=False, rule="")),
    "processes-differ": lambda: stepping(processes=[processes_as("wrong")]),
    "processes-failed": lambda: stepping(processes=[processes_as("stuck")]),
}
# codes of evidence that agrees, and the one that stands beside others
ALWAYS = {"interpreter-blind-spots", "no-target-receipt", "no-step-named"}
BESIDE = {"nothing-judged": nothing_compared}
# Those of a profile have tests of their own: test_profile_rules.py.
PROFILE = {
    "dispatch-time",
    "logical-device-time-as-throughput",
    "model-as-time",
    "no-persuasive-region",
    "not-warm",
    "profile-informs-only",
    "share-is-conditional",
}


def codes(evidence: Evidence) -> set[str]:
    return {each.code for each in decide(evidence).findings}


def test_evidence_that_agrees():
    decision = decide(BASE)
    assert codes(BASE) == ALWAYS
    assert (decision.decision, exit_code(decision)) == (AWAIT, 0)


@pytest.mark.parametrize("code", MINIMAL)
def test_the_least_evidence(code):
    found = codes(MINIMAL[code]())
    dropped = {"no-target-receipt"} if code == "no-target-declared" else set()
    assert found == (ALWAYS | {code}) - dropped


@pytest.mark.parametrize("code", MINIMAL)
def test_what_a_finding_does(code):
    decision = decide(MINIMAL[code]())
    effect = reasons()[code].effect
    subject = reasons()[code].subject
    assert next(each for each in decision.findings if each.code == code).subject == subject
    expected = {"revise": (REVISE, 1), "forbid": (None, 2), "await": (AWAIT, 0), "note": (AWAIT, 0)}[effect]
    assert (decision.decision, exit_code(decision)) == expected
    assert code in decision.summary if effect in ("revise", "forbid") else code not in decision.summary


def test_nothing_judged():
    decision = decide(nothing_compared())
    assert {"nothing-judged", "not-captured"} <= {each.code for each in decision.findings}
    assert decision.decision is None


def test_nothing_judged_is_not_said_of_a_kernel_that_never_ran():
    every = replace(BASE, cells=[replaced(each, outcome="crashed", output_digest=None) for each in BASE.cells])
    assert "nothing-judged" not in codes(every)
    assert decide(every).decision == REVISE
    without_oracle = replace(BASE, cells=[replaced(each, outcome="unjudged") for each in BASE.cells])
    assert decide(without_oracle).summary.startswith("No decision: a fault of the audit (oracle-failed).")


def test_every_code_has_a_rule():
    reached = {*MINIMAL, *ALWAYS, *BESIDE, *PROFILE, *SHOWN}
    assert set(reasons()) == reached


def test_every_reason_is_explained():
    for reason in reasons().values():
        assert reason.subject in SUBJECTS and reason.effect in EFFECTS and reason.criterion in CRITERIA
        assert reason.means.endswith(".") and reason.resolve.endswith(".")
        assert reason.effect != "revise" or reason.subject == "kernel"
        assert reason.effect != "forbid" or reason.subject != "kernel"


def test_a_tail_is_one_along_its_own_axis_and_in_its_own_program():
    rows_like_columns = replace(BASE, cells=[replaced(each, shape=[8, 256]) for each in BASE.cells])
    assert "divisible-only" in codes(rows_like_columns)  # 8 is no multiple of 128, and need not be
    other = replaced(
        BASE.programs[0], digest="sha256:other", kernels=[replaced(BASE.programs[0].kernels[0], blocks=[[7, 5]])]
    )
    assert "divisible-only" in codes(replace(divisible(), programs=[*BASE.programs, other]))
    whole = [replaced(each, kernels=[replaced(each.kernels[0], grid=[], allocations=[])]) for each in BASE.programs]
    assert codes(replace(divisible(), programs=whole)) == ALWAYS  # one block is the whole array: it has no tail
    one = [replaced(each, shape=[9, 256] if index == 0 else [8, 256]) for index, each in enumerate(BASE.cells)]
    assert codes(replace(BASE, cells=one)) == ALWAYS


def test_what_is_not_the_kernels_is_never_its_fault():
    for code, reason in reasons().items():
        if code in MINIMAL and reason.subject != "kernel":
            assert decide(MINIMAL[code]()).decision != REVISE


def test_rules_are_pure():
    before = sample_evidence.digest_of(BASE.cells)
    for rule in RULES:
        assert rule(BASE) == rule(BASE)
    assert sample_evidence.digest_of(BASE.cells) == before


@pytest.mark.parametrize("outcome", ["differs", "crashed"])
def test_one_finding_for_many_cells_names_them_all(outcome):
    every = replace(BASE, cells=[replaced(each, outcome=outcome, code="values-differ") for each in BASE.cells])
    (found,) = [each for each in decide(every).findings if reasons()[each.code].effect == "revise"]
    judged = [each for each in BASE.cells if each.judged or outcome == "crashed"]
    assert found.records == sorted(each.id for each in judged)
    assert f"{len(judged)} cells, first " in found.text


def test_the_first_position_is_told():
    sample = sample_evidence.failing()
    cell = next(each for each in sample.evidence.cells if each.differing_first)
    text = next(
        each.text for each in decide(with_cell(**_difference_of(cell))).findings if each.code == "values-differ"
    )
    assert text.endswith("at [0, 128] 0.0 instead of 1.5")


def _difference_of(cell) -> dict:
    return {"outcome": "differs", "code": "values-differ", "differing_first": cell.differing_first}


def test_unjudged_values_break_nothing_and_dead_workers_do():
    place, cell = next((index, each) for index, each in enumerate(BASE.cells) if not each.judged)

    def changed(**changes) -> Evidence:
        cells = list(BASE.cells)
        cells[place] = replaced(cell, **changes)
        return replace(BASE, cells=cells)

    assert codes(changed(outcome="recorded", differing=9)) == ALWAYS
    assert "permutation-differs" not in codes(changed(outcome="recorded", permutation_holds=False))
    assert "crashed" in codes(changed(outcome="crashed", output_digest=None, baseline_outcome=None))
    assert "inputs-changed" in codes(changed(outcome="recorded", inputs_unchanged=False))


def test_only_the_candidates_programs_are_judged():
    assert codes(with_program(side="fused", kernels=[], donated=[0])) == ALWAYS


def test_a_finding_has_the_subject_of_its_code_and_sorted_records():
    made = finding("control-accepted", "text", ["b", "a", "b"])
    assert (made.subject, made.records, made.scope) == ("audit", ["a", "b"], "any target")


def test_a_door_that_opens_wide_or_narrow():
    audit = with_audit(door=Door(keywords={"mode": "tpu"}, raises="RuntimeError"))
    shut = RefusalCheck(name="door", promised="RuntimeError", outcome="refused", raised="RuntimeError")
    opened = RefusalCheck(
        name="door-opened", promised="interpret=False in every kernel", outcome="refused", message="False"
    )
    assert codes(replace(audit, refusals=[shut, opened])) == ALWAYS
