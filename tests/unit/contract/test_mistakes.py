"""Every mistake in the call of `audit` is an error in five parts that names the key, the value and near names."""

from __future__ import annotations

import audit_mistakes
import pytest

from kernel_audit.contract.words import between, multiple, ulp
from kernel_audit.errors import AuditFileError


def test_the_call_that_the_mistakes_change_is_right():
    audit = audit_mistakes.declare()
    assert audit.name == "add"
    assert audit.declared_dims == {"m": 9, "n": 129}
    assert audit.dtype_bindings() == [{"T": "float32"}, {"T": "bfloat16"}]
    assert audit.agreement.kind == "derived" and audit.oracle.kind == "lifted" and audit.precision.oracle == "float64"


@pytest.mark.parametrize("name", audit_mistakes.MISTAKES)
def test_mistake(name: str):
    changes, what, where, got = audit_mistakes.MISTAKES[name]
    with pytest.raises(AuditFileError) as caught:
        audit_mistakes.declare(**dict(changes))
    error = caught.value
    assert what in error.what
    assert where in error.where
    assert error.expected
    assert got in str(error.got)
    assert error.stage == "audit" and error.exit_code == 2
    lines = str(error).splitlines()
    assert lines[0] == f"audit: {error.what}" and lines[1] == f"  in        {error.where}"
    assert error.text() == str(error)


def test_a_tolerance_needs_its_reason():
    with pytest.raises(AuditFileError, match="without its derivation") as caught:
        ulp(2, because=" ")
    assert "ulp(2)" in caught.value.where


@pytest.mark.parametrize(("word", "sizes"), [(multiple, (0,)), (between, (0, 4)), (between, (5, 4))])
def test_a_rule_admits_some_size(word, sizes):
    with pytest.raises(AuditFileError, match="admits no size"):
        word(*sizes)


def test_equal_choices_of_another_type_are_two_choices():
    assert audit_mistakes.declare(tuning={"block": [1, True, 1.0]}).tuning == {"block": [1, True, 1.0]}


def test_an_audit_of_the_same_name_is_refused():
    audit_mistakes.declare()
    first = list(audit_mistakes.declared)
    with pytest.raises(AuditFileError, match="two audits of one name"):
        audit_mistakes.audit(**{"candidate": "kernel.py:add", "name": "add", **audit_mistakes.right()})
    assert first == audit_mistakes.declared


def test_a_file_that_declares_a_mistake_declares_nothing():
    audit_mistakes.declared.clear()
    with pytest.raises(AuditFileError):
        audit_mistakes.declare(shapes=[{"m": 1}])
    assert audit_mistakes.declared == []
