"""Audits through the real compilers of described targets. Slow, and only where a compiler is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from kernel_audit.conduct import Question
from kernel_audit.conduct.compiling import CompileQuestion, compile_audit, exit_code
from kernel_audit.errors import TargetError
from kernel_audit.target import described

AUDITS = Path(__file__).parent / "compiled" / "audits.py"
needs_libtpu = pytest.mark.skipif(
    find_spec("libtpu") is None, reason='no TPU compiler here: pip install "kernel-audit[tpu]"'
)
needs_cuda = pytest.mark.skipif(
    find_spec("jax_cuda12_plugin") is None, reason='no GPU compiler here: pip install "kernel-audit[cuda]"'
)


def compiled(audit, *targets, **asked):
    return compile_audit(CompileQuestion(Question(audit=audit), targets, **asked), lambda *_: None)


def codes(report):
    return {each.code for each in report.findings}


def test_a_target_without_its_compiler_is_told_with_the_command(monkeypatch):
    monkeypatch.setattr(described, "find_spec", lambda name: None)
    said = []
    question = CompileQuestion(Question(audit="axpy"), ("tpu:v5e", "gpu:h200"))
    report = compile_audit(question, lambda text, *_: said.append(text))
    assert not any(text.startswith("compiling") for text in said)  # for what?
    assert exit_code(report) == 0 and report.records == []
    assert 'pip install "kernel-audit[tpu]"' in report.not_compiled["tpu:v5e"]
    assert 'pip install "kernel-audit[cuda]"' in report.not_compiled["gpu:h200"]


def test_an_extent_of_no_devices_is_told_with_those_that_there_are():
    with pytest.raises(TargetError) as raised:
        described.described_target("tpu:v6e", "0x0")
    assert "such as 4x4, 16x16" in raised.value.expected


@pytest.mark.slow
@needs_libtpu
class TestTpu:
    def test_the_kernel_is_found_again_and_has_a_floor(self):
        report = compiled(f"{AUDITS}:honest", "tpu:v5e")
        (record,) = report.records
        assert record.accepted and exit_code(report) == 0 and report.findings == []
        assert [each.found for each in record.kernels] == [True]
        assert record.derived_bytes == 2 * 64 * 128 * 4
        assert record.bundles and record.spills == 0
        assert record.floor_seconds == max(record.copy_seconds, record.schedule_seconds)
        assert next(each for each in record.schedule if each.kernel).steps == 8

    def test_vmem_over_use_with_use_and_limit(self):
        (record,) = compiled(f"{AUDITS}:too-much-vmem", "tpu:v5e").records
        assert record.accepted is False and record.reason.memory == "vmem"
        assert (record.reason.used_bytes, record.reason.limit_bytes) == (256 << 20, 128 << 20)

    @pytest.mark.parametrize(("name", "said"), [("misaligned", "divisible by 8"), ("sorts", "sort")])
    def test_what_does_not_lower_is_revise(self, name, said):
        report = compiled(f"{AUDITS}:{name}", "tpu:v5e")
        assert exit_code(report) == 1 and codes(report) == {"compiler-refuses"}
        assert said in report.records[0].reason.text and report.records[0].reason.stage == "lowering"

    def test_a_refusal_by_a_target_that_the_audit_is_not_for_is_no_finding(self):
        report = compiled(f"{AUDITS}:sorts", "tpu:v6e")
        assert report.records[0].accepted is False and report.findings == [] and exit_code(report) == 0

    @pytest.mark.parametrize("topology", ["3x3", "4"])
    def test_a_topology_that_the_compiler_does_not_know(self, topology):
        with pytest.raises(TargetError, match="a topology that cannot be described") as raised:
            compiled(f"{AUDITS}:honest", "tpu:v5e", topology=topology)
        error = raised.value
        assert error.where == f"--topology {topology}" and "2x2, 4x4, 16x16" in error.expected
        assert "opology" in error.got and "doctor" not in error.text()

    def test_spills_are_named(self):
        report = compiled(f"{AUDITS}:spills", "tpu:v5e")
        assert report.records[0].spills > 0 and codes(report) == {"kernel-spills"}

    def test_a_candidate_that_reads_the_backend_is_compiled_with_its_kernel(self):
        report = compiled(f"{AUDITS}:reads-backend", "tpu:v5e")
        assert codes(report) == {"candidate-reads-backend"}
        assert report.records[0].kernels[0].found

    def test_a_kernel_dropped_as_dead_code(self):
        report = compiled(f"{AUDITS}:unused", "tpu:v5e")
        assert codes(report) == {"kernel-not-in-program"}
        assert not report.records[0].kernels[0].found and not report.records[0].kernels[0].live

    def test_a_call_that_the_compiler_made_itself(self):
        report = compiled(f"{AUDITS}:heads-doubled", "tpu:v5e")
        assert "compiler-custom-call" in codes(report)
        baseline = report.records[-1]
        assert baseline.compiler_calls and baseline.derived_bytes is None

    def test_the_probe_asks_the_unguarded_builder(self):
        family = compiled("axpy", "tpu:v5e", probe=True).family
        asked = {(each.changed, each.dtype): each for each in family}
        assert asked["first declared", "float32"].accepted
        assert asked["block=(8, 100)", "float32"].accepted is False
        assert asked["block=(8, 256)", "float32"].accepted
        large = next(each for each in family if each.reason and each.reason.memory == "vmem")
        assert large.reason.used_bytes > large.reason.limit_bytes

    def test_what_a_candidates_own_guard_refuses_is_its_guards(self):
        place = "kernel_audit.kernels.pipelined_axpy:pipelined_axpy"
        question = CompileQuestion(Question(audit="axpy", candidate=place), ("tpu:v5e",), probe=True)
        asked = {each.changed: each for each in compile_audit(question, lambda *_: None).family}
        assert asked["block=(8, 100)"].reason.stage == "guard"

    def test_one_all_reduce_in_the_complete_step_of_256_devices(self):
        report = compiled("regression", "tpu:v5e", topology="16x16")
        steps = [each for each in report.records if each.part == "step"]
        assert steps and all(each.accepted and each.devices == 256 for each in steps)
        for each in steps:
            assert [one.kind for one in each.collectives] == ["all-reduce"]
            assert each.collectives[0].payload_bytes == 513 * 4

    def test_the_regression_kernel_reads_x_once(self):
        records = compiled("regression", "tpu:v5e").records
        assert records[0].side == "candidate"
        for record in [each for each in records if each.side == "candidate" and each.part == "program"]:
            itemsize = {"float32": 4, "bfloat16": 2}[record.dtype]
            assert abs(record.derived_bytes / ((1 << 20) * 512 * itemsize) - 1) < 0.02
            assert record.floor_seconds <= 1.02 * record.copy_seconds
            ordinary = next(
                each for each in records
                if each.side == "ordinary_gradient" and each.part == "program" and each.dtype == record.dtype
            )  # fmt: skip
            assert record.floor_seconds <= 0.55 * ordinary.floor_seconds
            assert record.spills == 0 or record.dtype == "bfloat16"

    def test_nothing_is_left_in_the_temporary_folder(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        before = set(Path("/tmp").glob("tpu_logs*"))
        assert compiled(f"{AUDITS}:honest", "tpu:v5e", "tpu:v6e").records[1].accepted  # two compile workers at once
        assert list(tmp_path.iterdir()) == [] and set(Path("/tmp").glob("tpu_logs*")) == before


@pytest.mark.slow
@needs_cuda
def test_a_triton_kernel_for_a_described_gpu():
    records = compiled("axpy-gpu", "gpu:h200").records
    kernels = [each for each in records if each.side == "candidate"]
    assert kernels and all(each.accepted and each.kernels[0].found for each in kernels)
    assert all(each.spills == 0 and each.registers > 0 and each.shared_bytes is not None for each in kernels)
    assert all(each.ptx_digest for each in kernels)
