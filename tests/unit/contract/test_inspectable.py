"""An audit may state a function, shapes and what may vary, and no more: then it can be inspected and compiled only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kernel_audit import audit, built_by, step_time
from kernel_audit.contract import Audit, declared, require_to_decide
from kernel_audit.errors import AuditFileError
from kernel_audit.records import decode, encode


@pytest.fixture(autouse=True)
def no_audits_left() -> Iterator[None]:
    before = list(declared)
    declared.clear()
    yield
    declared[:] = before


def declare(**more: Any) -> Audit:
    audit(**{"candidate": "kernel.py:add", "name": "add", "args": ["x: f32[m=64]"], **more})
    return declared[-1]


def test_neither_baselines_nor_worth_need_be_stated():
    made = declare()
    assert made.missing_to_decide == ["baselines", "worth"]
    assert decode(encode(made), Audit, where="audit.json") == made


@pytest.mark.parametrize(
    ("more", "word"), [({}, "baselines"), ({"baselines": ["kernel.py:plain"]}, "worth")], ids=["neither", "no worth"]
)
def test_what_is_missing_to_decide_is_named(more: dict[str, Any], word: str):
    with pytest.raises(AuditFileError) as raised:
        require_to_decide(declare(**more))
    error = raised.value
    assert (error.where, error.got) == (f"audit 'add': {word}", f"no {word}")
    assert "kernel-audit inspect" in str(error.next_command)


def test_nothing_is_missing_where_both_are_stated():
    require_to_decide(declare(baselines=["kernel.py:plain"], worth=step_time(None, 0.02)))


def test_an_empty_list_of_baselines_is_still_a_mistake():
    with pytest.raises(AuditFileError, match="no reference"):
        declare(baselines=[])


def test_a_candidate_can_be_what_a_factory_makes():
    made = declare(candidate=built_by("kernel.py:make"))
    assert (made.candidate.text, made.candidate.factory) == ("kernel.py:make", True)


def test_an_audit_of_a_factory_is_called_as_its_file():
    assert declare(candidate=built_by("layer_norm.py:make"), name=None).name == "layer-norm"
    assert declare(candidate=built_by("layer_norm.py:make_backward"), name=None).name == "layer-norm-make-backward"
    assert declare(candidate=built_by("kernels.softmax:make"), name=None).name == "softmax"
    assert declare(candidate="kernel.py:add", name=None).name == "add"


def test_a_factory_must_be_found_by_another_process():
    with pytest.raises(AuditFileError, match="a function that another process cannot find"):
        built_by(lambda: None)
