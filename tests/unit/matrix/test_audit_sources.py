"""Which files a receipt and a bundle have to agree about."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_audit.conduct.evaluation import evaluate
from kernel_audit.conduct.observing import _readable
from kernel_audit.conduct.question import Question, with_given
from kernel_audit.matrix.audit_sources import is_the_tool
from kernel_audit.measure.campaign import audit_of, digests_of
from kernel_audit.records import digest_file
from kernel_audit.worker import Pool

AUDIT = """
import jax.numpy as jnp
from kernel_audit import audit, exact, step_time
import helper
import stepping


def plain(x):
    return x + x


def twice(x):
    from inner import late
    return late.double(x)


audit(name="ordinary", candidate=twice, baselines=[plain], args=["x: f32[m=8, n=8]"], results=["out: f32[m, n]"],
      vary={"m": any}, agreement=exact(), worth=step_time("stepping.py:step", 0.02), targets=["gpu:h200"])
"""
FILES = {
    "own.py": AUDIT,
    "helper.py": "import deeper\n",
    "deeper.py": "X = 1\n",
    "stepping.py": "def step(local, mesh, counts=None):\n    pass\n",
    "inner/__init__.py": "",
    "inner/late.py": "from . import doubling\n\ndef double(x):\n    return doubling.of(x)\n",
    "inner/doubling.py": "def of(x):\n    return 2 * x\n",
    "unrelated.py": "X = 2\n",
    "other.py": "import beside_other\n\ndef twice(x):\n    return x + x\n",
    "beside_other.py": "X = 3\n",
}
EXPECTED = {
    "own.py",
    "helper.py",
    "deeper.py",
    "stepping.py",
    "inner/__init__.py",
    "inner/late.py",
    "inner/doubling.py",
}


@pytest.fixture(scope="module")
def pool():
    with Pool(size=1, preload=("kernel_audit.matrix.audit_job",)) as made:
        yield made


def write(folder: Path) -> Path:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("name", ["regression", "axpy-gpu", "bias-relu", "axpy", "blocked-axpy", "bias-relu-gpu"])
def test_a_built_in_audit_names_the_same_files_on_the_device_and_where_it_is_judged(
    pool: Pool, tmp_path: Path, name: str
):
    _, files = evaluate(Question(audit=name), pool, tmp_path / "audit")
    assert {label: digest_file(Path(path)) for label, path in files.items()} == digests_of(audit_of(name))


def test_the_kernels_of_the_regression_are_among_its_files():
    kernels = {f"kernel_audit/kernels/{name}.py" for name in ("regression_tpu", "regression_triton", "regression_step")}
    found = set(digests_of(audit_of("regression")))
    assert kernels < found and not any(is_the_tool(label) for label in found)


def test_a_file_brings_what_it_imports_also_late_and_from_packages(pool: Pool, tmp_path: Path):
    _, files = evaluate(Question(audit=str(write(tmp_path) / "own.py")), pool, tmp_path / "audit")
    assert set(files) == EXPECTED


def test_another_candidate_brings_its_files(pool: Pool, tmp_path: Path):
    write(tmp_path / "beside")
    question = Question(audit=str(write(tmp_path / "audit") / "own.py"), candidate=f"{tmp_path}/beside/other.py:twice")
    with pytest.raises(Exception, match="same name"):
        with_given(question, {})
    (tmp_path / "audit" / "other.py").unlink()
    assert set(with_given(question, {"own.py": "a"})) == {"own.py", "other.py", "beside_other.py"}


def test_a_bundle_has_no_second_label_for_a_file_and_nothing_of_the_tool(tmp_path: Path):
    for name in (
        "sub/kernel.py",
        "late.py",
        "kernel_audit/contract/words.py",
        "kernel_audit/kernels/regression_tpu.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    told = {str(each.relative_to(tmp_path)): str(each) for each in tmp_path.rglob("*.py") if each.parent.name != "sub"}
    files = {"sub/kernel.py": str(tmp_path / "sub" / "kernel.py")}
    found = _readable({"kernel.py": files["sub/kernel.py"], **told}, files, [tmp_path])
    assert list(found) == ["kernel_audit/kernels/regression_tpu.py", "late.py", "sub/kernel.py"]
