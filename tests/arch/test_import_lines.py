"""Imports point one way: the judging half never reaches the measuring half, and nothing reaches the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_lines import BOTTOM, MAY_IMPORT, OUTSIDE, imports, wrong_imports

import kernel_audit

ROOT = Path(kernel_audit.__file__).parent
NO_JAX = (
    *sorted(BOTTOM),
    "contract",
    "fixture",
    "evidence",
    "decision",
    "report",
    "cli",
    "conduct",
    "__init__",
)


def test_every_import_follows_the_lines():
    assert [str(each) for each in wrong_imports(ROOT)] == []


def test_every_part_has_a_place():
    parts = {each.name.removesuffix(".py") for each in ROOT.iterdir() if each.suffix == ".py" or each.is_dir()}
    assert parts - set(MAY_IMPORT) - {"__pycache__", "py.typed"} == set()


@pytest.mark.parametrize("part", NO_JAX)
def test_the_parent_process_names_no_jax(part: str):
    assert OUTSIDE not in MAY_IMPORT[part]


def test_the_lines_themselves_have_no_circle():
    left = {part: set(allowed) & set(MAY_IMPORT) for part, allowed in MAY_IMPORT.items()}
    while left:
        free = [part for part, needs in left.items() if not needs & set(left)]
        assert free, f"a circle among {sorted(left)}"
        for part in free:
            del left[part]


@pytest.mark.parametrize("part", ["worker", "matrix"])
def test_what_the_parent_loads_of_the_measuring_half_imports_jax_in_jobs_only(part: str):
    """Modules that run in workers are named *_job or perform; every other one is loaded by the parent."""
    at_top = [
        str(each)
        for each in imports(ROOT)
        if each.part == part
        and each.at_top
        and each.names in (OUTSIDE, "program")
        and not each.file.endswith(("_job.py", "perform.py"))
    ]
    assert at_top == []
