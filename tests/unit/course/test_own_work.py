"""A reader's file may not take its kernels from the solution or the package, however it names them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import kernel_audit
from kernel_audit.course.checker import Checker
from kernel_audit.course.own_work import SOLUTION_DIGEST, closed_files, require_own_work, require_shipped_solution
from kernel_audit.course.promises import WANTED
from kernel_audit.errors import AuditError
from kernel_audit.records import digest_bytes

TOP = Path(__file__).parents[3]
SOLUTION = TOP / "projects" / "kernel-audit" / "solution" / "model.py"

BORROWED = [
    "import kernel_audit.kernels.blocked_axpy",
    "from kernel_audit import kernels",
    "from kernel_audit.kernels import blocked_axpy as mine",
    "from kernel_audit.kernels.blocked_axpy import blocked_axpy",
    "from kernel_audit.target.benchmark import target_benchmark",
    "def f():\n    from kernel_audit.kernels.pipelined_axpy import pipelined_axpy",
    "import solution.model",
    "from solution import model",
    "from .solution import model",
    "import importlib\nimportlib.import_module('kernel_audit.kernels.blocked_axpy')",
    "__import__('kernel_audit.kernels.blocked_axpy')",
    "import runpy\nrunpy.run_path('projects/kernel-audit/solution/model.py')",
]
OWN = [
    '"""Unlike kernel_audit.kernels.blocked_axpy, this pads with zeros."""\nimport jax',
    "# from kernel_audit.kernels import blocked_axpy\nimport jax.numpy as jnp",
    "solution = 3\nimport kernels_of_my_own",
    "import importlib\nimportlib.import_module('jax.numpy')",
    "from kernel_audit import audit",
    'NOTE = "I read the solution model before"',
    'NOTE = "unlike kernel_audit, kernels of mine pad with zeros"',
    "this is no Python",
]


@pytest.mark.parametrize("text", BORROWED)
def test_borrowed_kernels_are_refused_with_their_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "my_model.py"
    path.write_text(text)
    with pytest.raises(AuditError, match=r"line \d+: "):
        require_own_work(path)


@pytest.mark.parametrize("text", OWN)
def test_what_merely_mentions_them_is_not(text: str, tmp_path: Path) -> None:
    path = tmp_path / "my_model.py"
    path.write_text(text)
    require_own_work(path)


def test_starter_is_own_work_and_a_copy_of_the_solution_is_not(tmp_path: Path) -> None:
    require_own_work(TOP / "projects" / "kernel-audit" / "starter" / "model.py")
    copy = tmp_path / "my_model.py"
    copy.write_bytes(SOLUTION.read_bytes())
    with pytest.raises(AuditError, match="a copy of the shipped solution"):
        require_own_work(copy)


def test_solution_is_known_by_its_digest(tmp_path: Path) -> None:
    assert digest_bytes(SOLUTION.read_bytes()) == SOLUTION_DIGEST, "put this digest into own_work.py"
    require_shipped_solution(SOLUTION)
    changed = tmp_path / "model.py"
    changed.write_bytes(SOLUTION.read_bytes() + b"\n")
    with pytest.raises(AuditError, match="not the one that was shipped"):
        require_shipped_solution(changed)
    with pytest.raises(AuditError, match="no file"):
        require_shipped_solution(tmp_path / "missing.py")


def test_loaded_files_tell_on_a_name_that_was_put_together() -> None:
    assert closed_files({"kernel_audit/kernels/blocked_axpy.py": "/a/kernel_audit/kernels/blocked_axpy.py"})
    assert closed_files({"model.py": "/a/projects/kernel-audit/solution/model.py"})
    assert not closed_files({"my_model.py": "/a/my_model.py", "my_kernels.py": "/a/my_kernels.py"})
    assert closed_files({}, ["/usr/lib/site-packages/kernel_audit/kernels/__pycache__/blocked_axpy.cpython-311.pyc"])
    assert not closed_files({}, ["/usr/lib/site-packages/kernel_audit/program/capture.py"])


def test_an_unchanged_copy_is_known_under_any_name(tmp_path: Path) -> None:
    shutil.copytree(Path(kernel_audit.__file__).parent / "kernels", tmp_path / "mine")
    copy = tmp_path / "mine" / "fused_bias_relu.py"
    assert closed_files({"mine/fused_bias_relu.py": str(copy)}) == ["mine/fused_bias_relu.py"]
    copy.write_text(copy.read_text() + "# mine now\n")  # stated in own_work: a changed copy is not recognised
    assert closed_files({"mine/fused_bias_relu.py": str(copy)}) == []


@pytest.mark.parametrize(
    "afterwards", ["", "    [sys.modules.pop(each) for each in list(sys.modules) if 'audit.ker' in each]\n"]
)
def test_a_kernel_borrowed_when_the_function_is_called_is_refused(afterwards: str, tmp_path: Path) -> None:
    path = tmp_path / "my_model.py"
    path.write_text(
        "import importlib, sys\n\n\ndef blocked_axpy(x, y, block=(2, 4)):\n"
        "    module = importlib.import_module('kernel_' + 'audit.ker' + 'nels.blocked_axpy')\n"
        f"{afterwards}    return module.blocked_axpy(x, y, block)\n"
    )
    require_own_work(path)
    (tmp_path / "home").mkdir()
    checker = Checker(tmp_path / "home", workers=1)
    try:
        with pytest.raises(AuditError, match="takes its kernels from somewhere else"):
            checker.check(path, WANTED[0])
    finally:
        checker.close()
