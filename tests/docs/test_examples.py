"""The examples end in the decisions that the pages give for them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_audit.conduct import Question, check
from kernel_audit.decision import exit_code

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("file", "decision", "code"),
    [("silu.py", "await-target-evidence", 0), ("silu_cut_short.py", "revise", 1)],
)
def test_an_example_ends_in_its_decision(file: str, decision: str, code: int):
    answer = check(Question(audit=str(EXAMPLES / file), cells="9x256-normal", workers=1), lambda *_: None)
    assert (answer.decision.decision, exit_code(answer.decision)) == (decision, code)
    assert len(answer.evidence.cells) >= 1


def test_every_example_is_tried():
    """`lesson.py` is held by tests/golden/test_lesson.py, the two steps by tests/unit/workload/test_steps_of_examples.py."""
    names = ["lesson.py", "mlp.py", "scan16.py", "silu.py", "silu_cut_short.py"]
    assert sorted(each.name for each in EXAMPLES.glob("*.py")) == names


def test_the_commands_of_the_readme_work_one_after_another(tmp_path: Path):
    """As a user types them: relative places, in a folder that holds the audit file."""
    shutil.copy(EXAMPLES / "silu.py", tmp_path / "my_audit.py")
    for arguments, says in (
        (
            ["run", "my_audit.py", "--cells", "9x256-normal", "--out", "evidence/mine"],
            "page       evidence/mine/report.html",
        ),
        (["run", "my_audit.py", "--cells", "9x256-normal", "--out", "evidence/mine"], "evidence/mine is finished"),
        (["verify", "evidence/mine"], "verified"),
        (["explain", "values-differ"], "resolve"),
    ):
        command = [sys.executable, "-m", "kernel_audit", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert says in done.stdout
    assert sorted(each.name for each in (tmp_path / "evidence").iterdir()) == ["mine"]
