"""The tests of tests/arch find what they are there to find: each rule is broken once, in a tree made for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_lines import imports, wrong_imports
from shape import long_files, unsorted_names, vague_names

BAD_IMPORTS = {
    "decision/rules.py": "from kernel_audit.matrix.plan import make_plan",
    "report/page.py": "def draw():\n    import jax.numpy as jnp\n    return jnp",
    "contract/model.py": "from ..program import capture",
    "evidence/reading.py": "from kernel_audit import conduct",
    "records/plan.py": "import kernel_audit.contract.model",
    "worker/pool.py": "from kernel_audit.matrix import laboratory",
    "matrix/plan.py": "from kernel_audit.cli.options import question",
    "statistics/intervals.py": "from jax import numpy",
    "novelty/idea.py": "from kernel_audit.records import Cell",
}


def planted(root: Path, file: str, text: str) -> Path:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    return root


@pytest.mark.parametrize("file", BAD_IMPORTS)
def test_an_import_against_the_lines_is_found(file: str, tmp_path: Path):
    found = wrong_imports(planted(tmp_path, file, BAD_IMPORTS[file]))
    assert [each.file for each in found] == [file]


def test_allowed_imports_are_let_through(tmp_path: Path):
    planted(tmp_path, "report/page.py", "from kernel_audit.evidence import Evidence\nfrom . import svg")
    planted(tmp_path, "matrix/plan.py", "import json\nimport jax\nfrom kernel_audit import __version__")
    assert wrong_imports(tmp_path) == []


def test_imports_inside_functions_are_told_from_those_at_the_top(tmp_path: Path):
    text = "import jax\n\ndef run():\n    import jaxlib\n\nif TYPE_CHECKING:\n    import jax.numpy"
    found = list(imports(planted(tmp_path, "worker/pool.py", text)))
    assert [(each.line, each.at_top) for each in found] == [(1, True), (4, False), (7, False)]


def test_a_long_file_is_found(tmp_path: Path):
    planted(tmp_path, "matrix/plan.py", "x = 1\n" * 600)
    assert long_files(tmp_path, 600) == ["matrix/plan.py: 601"]


@pytest.mark.parametrize("file", ["utils.py", "matrix/plan_helpers.py", "common/plan.py", "worker/pool_manager.py"])
def test_a_vague_name_is_found(file: str, tmp_path: Path):
    assert len(vague_names(planted(tmp_path, file, ""))) == 1


@pytest.mark.parametrize(
    "text",
    [
        'from a import B, a\n__all__ = ["a", "B"]',
        'from a import B\n__all__ = ["B", "B"]',
        '__all__ = ["missing"]',
    ],
)
def test_a_list_of_public_names_that_is_wrong_is_found(text: str, tmp_path: Path):
    assert unsorted_names(planted(tmp_path, "matrix/__init__.py", text)) == ["matrix/__init__.py"]


def test_a_list_of_public_names_that_is_right_is_let_through(tmp_path: Path):
    planted(tmp_path, "matrix/plan.py", "")
    planted(
        tmp_path, "matrix/__init__.py", 'from a import CODE, Kind, make\n__all__ = ["CODE", "Kind", "make", "plan"]'
    )
    assert unsorted_names(tmp_path) == []
