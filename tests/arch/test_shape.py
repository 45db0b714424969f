"""Files stay small, are named for one idea, and packages say what they offer."""

from __future__ import annotations

import ast
from pathlib import Path

from shape import LONGEST, SECOND_LOOK, allowed_length, long_files, unsorted_names, vague_names

import kernel_audit

ROOT = Path(kernel_audit.__file__).parent


def test_no_file_is_longer_than_allowed():
    assert long_files(ROOT, LONGEST) == []


def test_exceptions_are_still_needed():
    for name in allowed_length:
        assert len((ROOT / name).read_text("utf-8").splitlines()) > LONGEST, f"{name} is short enough: no exception"


def test_files_worth_a_second_look_are_few():
    """Not a limit for any one file: a few may be over 400 lines, more than that is a habit."""
    found = long_files(ROOT, SECOND_LOOK)
    assert len(found) <= 3, f"look again at {found}"


def test_no_module_has_a_name_that_means_anything():
    assert vague_names(ROOT) == []


def test_public_names_are_sorted_and_exist():
    assert unsorted_names(ROOT) == []


def test_every_package_says_what_it_offers():
    packages = [each.parent.name for each in ROOT.glob("*/__init__.py")]
    silent = [name for name in packages if name != "cli" and "__all__" not in _text(name)]
    assert silent == []


def test_every_module_explains_itself():
    silent = [str(path) for path in ROOT.rglob("*.py") if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert [each for each in silent if not each.endswith("__main__.py")] == []


def _text(package: str) -> str:
    return (ROOT / package / "__init__.py").read_text("utf-8")
