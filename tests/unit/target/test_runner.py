"""A target runner on a stub of a target: what it prints, writes and returns. Nothing here is a receipt."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from kernel_audit.kernels import fused_bias_relu as package_kernel
from kernel_audit.target import attempt, main, runner
from kernel_audit.target.supervised import Ending

MODEL = """
import jax, jax.numpy as jnp
print("a model may print")

def fused_bias_relu(x, bias, block=(8, 128), mode="interpret"):
    assert mode == "tpu"
    total = x.astype(jnp.float32) + bias.astype(jnp.float32)
    return jnp.maximum(total, 0.0).astype(x.dtype)

def pipelined_axpy(x, y, block=(8, 128), buffers=2, no_pipelining=False, mode="simulate"):
    assert (block, buffers, no_pipelining, mode) == ((16, 256), 3, True, "tpu")
    return (2.0 * x.astype(jnp.float32) + y.astype(jnp.float32)).astype(x.dtype)
"""
FUSED = "--kernel fused --shape 17 257 --block 8 128"
PIPELINE = "--kernel pipeline --shape 17 257 --block 16 256 --buffers 3 --synchronous"
KERNEL_FILE = str(package_kernel.__file__)


@pytest.fixture
def without_kernels(monkeypatch):
    """The stub cannot compile a kernel for a target, so models without one are let through."""
    monkeypatch.setattr(attempt, "require_compiled_kernels", lambda *_: None)


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    """The attempt is made here: a test process has a backend already, and none survives a fork."""

    def here(work, deadline_s):
        ending = Ending()
        with contextlib.redirect_stdout(sys.stderr):
            work(ending.told.append)
        return ending

    monkeypatch.setattr(runner, "supervised", here)


class Run:
    """One run of the runner in a folder of its own."""

    def __init__(self, folder: Path, model: str | Path, line: str, capsys, target: str = "tpu") -> None:
        file = model if isinstance(model, Path) else folder / "my_model.py"
        if isinstance(model, str):
            file.write_text(model)
        self.out = folder / "records"
        words = [*line.split(), "--implementation", str(file), "--out", str(self.out)]
        self.code = main(words, target=target, solution=file)
        self.stdout, self.stderr = capsys.readouterr()

    def record(self, outcome: str) -> dict:
        (path,) = self.out.glob(f"*-{outcome}-1.json")
        return json.loads(path.read_text())


@pytest.mark.parametrize(("line", "dtype"), [(FUSED, "float32"), (FUSED, "bfloat16"), (PIPELINE, "bfloat16")])
def test_success_on_a_stub(stub_tpu, without_kernels, tmp_path, capsys, line, dtype):
    run = Run(tmp_path, MODEL, f"{line} --dtype {dtype}", capsys)
    assert run.code == 0
    told = json.loads(run.stdout)
    assert told == run.record("completed")
    assert told["source"]["file"] == "my_model.py" and told["source"]["digest"].startswith("sha256:")
    assert told["configuration"]["shape"] == [17, 257]
    assert told["device"]["actual_backend"] == "tpu"
    assert told["precision"] == {"operands": dtype, "arithmetic": "float32", "result": dtype}
    assert [each["differing"] for each in told["correctness"]] == [0] * 6
    assert {each["elements"] for each in told["correctness"]} == {17 * 257}
    assert len(told["timing"]["candidate"]["samples_ms"]) == len(told["timing"]["baseline"]["samples_ms"]) == 20
    assert "a model may print" in run.stderr
    assert str(tmp_path) not in run.stdout


def changed(old: str, new: str) -> str:
    assert old in MODEL
    return MODEL.replace(old, new)


FAILURES = {
    "values": (
        changed("jnp.maximum(total, 0.0)", "jnp.where(total > 0, total, 0.0)"),
        "compare",
        "fixture 'non-finite'",
    ),
    "tail": (changed("jnp.maximum(total, 0.0)", "jnp.maximum(total, 0.0).at[16, 256].set(-1)"), "compare", "[16, 256]"),
    "dtype": (changed("0.0).astype(x.dtype)", "0.0).astype(jnp.bfloat16)"), "compare", "result-dtype-differs"),
    "raised": (
        changed("    total =", "    raise KeyError('block')\n    total ="),
        "run",
        "KeyError: 'block' (my_model.py:",
    ),
    "exits": (changed("    total =", "    raise SystemExit(0)\n    total ="), "run", "SystemExit"),
    "import": ("raise SystemExit(0)", "load", "SystemExit"),
    "interrupt": ("raise KeyboardInterrupt", "load", "KeyboardInterrupt"),
    "unreadable": ("x = 1\ndef f(:\n", "load", "(my_model.py:2)"),
    "no function": ("def fused_bias_rely(): pass", "load", "did you mean 'fused_bias_rely'?"),
    "patched": (
        changed("print(", "jax.block_until_ready = lambda tree: tree\nprint("),
        "load",
        "jax.block_until_ready",
    ),
}


@pytest.mark.parametrize(("model", "stage", "said"), FAILURES.values(), ids=FAILURES)
def test_a_failure_on_the_target_is_recorded(
    stub_tpu, without_kernels, monkeypatch, tmp_path, capsys, model, stage, said
):
    monkeypatch.setattr(jax, "block_until_ready", jax.block_until_ready)  # put back, whatever the model does to it
    run = Run(tmp_path, model, FUSED, capsys)
    assert run.code == 1
    assert run.stdout == ""
    failure = run.record("failed")["failure"]
    assert failure["stage"] == stage
    assert said in f"{failure}".replace('"', "'") and said in run.stderr
    assert "Traceback" not in run.stderr
    assert "timing" not in run.record("failed")


def test_a_second_failure_does_not_replace_the_first(stub_tpu, tmp_path, capsys):
    for _ in range(2):
        Run(tmp_path, "raise ValueError", FUSED, capsys)
    assert [each.name[-6:] for each in sorted((tmp_path / "records").iterdir())] == ["1.json", "2.json"]


def test_a_model_without_a_kernel_is_a_failure(stub_tpu, tmp_path, capsys):
    run = Run(tmp_path, MODEL, FUSED, capsys)
    assert run.code == 1 and run.record("failed")["failure"]["what"] == "the model runs no Pallas kernel"


def test_a_kernel_that_would_be_interpreted_is_a_failure(stub_tpu, tmp_path, capsys):
    simulating = Path(KERNEL_FILE).read_text().replace('interpret=mode == "interpret"', "interpret=True")
    run = Run(tmp_path, simulating.replace("from .", "from kernel_audit.kernels."), FUSED, capsys)
    assert run.code == 1
    assert run.record("failed")["failure"]["got"] == "fused_bias_relu with interpret=True"


@pytest.mark.parametrize("target", ["tpu", "gpu"])
def test_an_honest_kernel_is_compiled_and_never_interpreted(request, target, monkeypatch, tmp_path, capsys):
    """On the stub it gets as far as its compilation, which fails, and stays failed."""
    request.getfixturevalue(f"stub_{target}")
    monkeypatch.setattr("kernel_audit.kernels.fused_bias_relu.require_tpu", lambda *_: None)
    run = Run(tmp_path, "from kernel_audit.kernels.fused_bias_relu import fused_bias_relu", FUSED, capsys, target)
    assert run.code == 1 and run.stdout == ""
    failure = run.record("failed")["failure"]
    assert failure["stage"] == "run" and "Only interpret mode is supported on CPU" in failure["got"]


def test_a_baseline_that_differs_is_a_failure_too(stub_tpu, without_kernels, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("kernel_audit.kernels.bias_relu_references.maximum_jnp", lambda x, bias: x)
    run = Run(tmp_path, MODEL, FUSED, capsys)
    assert run.code == 1 and "the baseline's output differs" in run.stderr


def test_the_backend_is_looked_at_before_the_model(tmp_path, capsys):
    run = Run(tmp_path, "raise SystemError('imported')", FUSED, capsys)
    assert (run.code, run.stdout) == (2, "")
    assert run.stderr.startswith("target: no TPU to run on") and "got       backend 'cpu'" in run.stderr
    assert not run.out.exists()


def test_a_model_that_is_not_there(stub_tpu, tmp_path, capsys):
    run = Run(tmp_path, tmp_path / "nowhere.py", FUSED, capsys)
    assert (run.code, run.stdout) == (2, "") and "no model file" in run.stderr


def test_a_model_that_is_no_python_file(stub_tpu, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text(MODEL)
    for place in (tmp_path / "notes.txt", tmp_path):
        run = Run(tmp_path, place, FUSED, capsys)
        assert (run.code, run.stdout) == (2, "") and "a Python file (.py)" in run.stderr


def test_records_cannot_go_into_a_file(stub_tpu, tmp_path, capsys):
    (tmp_path / "records").write_text("")
    run = Run(tmp_path, MODEL, FUSED, capsys)
    assert (run.code, run.stdout) == (2, "") and "cannot be made" in run.stderr


UNREADABLE = [
    *("--shape 17 --block 8 128", "--shape 0 1 --block 8 128", "--shape 17 9 --block 8 128 --deadline soon"),
    *("--shape 17 9 --block 8 128 --deadline 0", "--shape 17 9 --block 8 128 --dtype float16"),
]


@pytest.mark.parametrize("line", [*(f"--kernel fused {each}" for each in UNREADABLE), "--kernel softmax", ""])
def test_a_line_that_cannot_be_read(line, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(line.split(), target="tpu", solution=Path("none"))
    assert stopped.value.code == 2
    assert capsys.readouterr().out == ""


def test_a_size_that_is_no_number_is_named(capsys):
    with pytest.raises(SystemExit):
        main(["--kernel", "fused", "--shape", "17", "9", "--block", "a", "128"], target="tpu", solution=Path("none"))
    assert "argument --block: a whole number of 1 or more, not 'a'" in capsys.readouterr().err


def test_the_fixtures_of_a_run_hold_sums_at_the_boundary_of_the_relu(stub_tpu, without_kernels, tmp_path):
    from kernel_audit.target.request import parse

    words = [*FUSED.split(), "--implementation", "solution"]
    made = attempt.Attempt(parse(words, "tpu"), "tpu", jax.devices()[0], tmp_path)
    (x, bias), arrays = made._fixture("cancellation")
    sums = np.asarray(x) + np.asarray(bias)
    assert (sums == 0).sum() > 50 and ((sums > 0) & (sums < 2e-2)).sum() > 20
    assert np.array_equal(arrays["expected.0"], np.maximum(sums, 0))
