"""The rule from what was seen to one outcome."""

from __future__ import annotations

import pytest

from kernel_audit.worker.verdict import Seen, judge

_FINE = {"result": {"value": 1}, "forgery": None, "overdue": None, "status": 0, "lost": None, "stderr": ""}
_MEMORY = {"type": "XlaRuntimeError", "message": "RESOURCE_EXHAUSTED: Out of memory", "where": ""}


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, "finished"),
        ({"result": None}, "crashed"),
        ({"status": 256}, "crashed"),
        ({"status": None, "result": None}, "crashed"),
        ({"status": 6, "result": None, "stderr": "std::bad_alloc"}, "out-of-memory"),
        ({"stderr": "std::bad_alloc"}, "finished"),
        ({"result": {"error": {"type": "ValueError", "message": "x", "where": ""}}}, "raised"),
        ({"result": {"error": {"type": "MemoryError", "message": "", "where": ""}}}, "out-of-memory"),
        ({"result": {"error": _MEMORY}}, "out-of-memory"),
        ({"result": {"error": {"error": "AuditError", "what": "Out of memory"}}}, "raised"),
        ({"lost": "gone", "status": None, "result": None}, "crashed"),
        ({"overdue": "late", "status": 9, "result": None, "stderr": "MemoryError"}, "timed-out"),
        ({"overdue": "late", "forgery": "found"}, "forged-output"),
        ({"forgery": "found"}, "forged-output"),
    ],
)
def test_outcome(change, outcome):
    assert judge(Seen(**{**_FINE, **change}))[0] == outcome


def test_an_outcome_other_than_finished_comes_with_an_error():
    _, error = judge(Seen(**{**_FINE, "forgery": "steps/x.json"}))
    assert error == {"type": "ForgedOutput", "message": "steps/x.json", "where": ""}
