"""Audit files as the command line reads them: through a worker, so that no mistake in one costs more than an error."""

from __future__ import annotations

import time

import pytest

from kernel_audit import conduct
from kernel_audit.errors import AuditFileError

HEAD = """
from kernel_audit import audit, step_time

def plain(x):
    return x + x

"""
DECLARED = """
@audit(baselines=[plain], args=["x: f32[m=9]"], worth=step_time(None, 0.0){more})
def {name}(x):
    return x + x
"""


def stated(*names: str, more: str = "") -> str:
    return HEAD + "".join(DECLARED.format(name=name, more=more) for name in names)


def test_a_right_file(read):
    audit, files = read(stated("double"))
    assert (audit.name, audit.candidate.text) == ("double", "audited.py:double")
    assert audit.baselines[0].function.text == "audited.py:plain"
    assert list(files) == ["audited.py"]


def test_one_of_several_by_name(read):
    audit, _ = read(stated("double_it", "again"), name="double-it")
    assert audit.candidate.name == "double_it"


def test_another_candidate_under_the_same_contract(read):
    audit, _ = read(stated("double"), candidate="other.py:triple")
    assert audit.candidate.text == "other.py:triple"
    assert audit.name == "double"


@pytest.mark.parametrize(
    ("text", "name", "what", "expected", "got"),
    [
        (stated("a", "b"), None, "several audits in this file", "one of a, b", "none named"),
        (stated("double"), "dubble", "no audit of this name", "one of double", "'dubble' (did you mean 'double'?)"),
        ("x = 1\n", None, "no audit in this file", "a function under @audit(...)", "none"),
        (
            HEAD + "raise RuntimeError('at the top')\n",
            None,
            "raised while it was read",
            "imported",
            "RuntimeError: at the top",
        ),
        ("def broken(:\n", None, "raised while it was read", "imported", "SyntaxError"),
        ("import no_such_module_here\n", None, "raised while it was read", "imported", "ModuleNotFoundError"),
        ("import sys\nsys.exit(3)\n", None, "raised while it was read", "imported", "SystemExit"),
        ("import os\nos._exit(7)\n", None, "did not finish", "within 2 s", "crashed, exit code 7"),
        (
            stated("double", more=', vary={"mm": any}'),
            None,
            "unknown dimension",
            "one of m",
            "'mm' (did you mean 'm'?)",
        ),
        (stated("double", more=', oracle="no.py:f"'), None, "file is not there", "beside the audit file", "no.py:f"),
        (stated("double", more=', oracle="no.m:f"'), None, "file is not there", "can be imported", "no.m:f"),
        (HEAD + "audit(baselines=[plain])\n", None, "raised while it was read", "imported", "missing"),
    ],
    ids=[
        "several",
        "near",
        "none",
        "raises",
        "syntax",
        "import",
        "exits",
        "os-exits",
        "mistake",
        "no-file",
        "no-module",
        "call",
    ],
)
def test_a_wrong_file(read, text, name, what, expected, got):
    with pytest.raises(AuditFileError) as caught:
        read(text, name=name)
    assert what in caught.value.what
    assert expected in str(caught.value.expected)
    assert got in str(caught.value.got)


def test_the_line_at_fault_is_named(read):
    with pytest.raises(AuditFileError, match="line 7: raise RuntimeError"):
        read(HEAD + "raise RuntimeError('at the top')\n")
    with pytest.raises(AuditFileError, match=r"line 1: def broken\(:"):
        read("def broken(:\n")


def test_code_that_hangs_ends_at_the_deadline(read):
    started = time.monotonic()
    with pytest.raises(AuditFileError, match="did not finish") as caught:
        read("import time\ntime.sleep(600)\n")
    assert caught.value.got == "timed-out"
    assert "within 2 s" in str(caught.value.expected)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("asked", "what", "got"),
    [
        ("nowhere.py", "no such audit file", "nothing there"),
        ("axpi", "no audit of this name", "'axpi' (did you mean 'axpy'"),
    ],
)
def test_a_place_that_is_none(asked, what, got):
    with pytest.raises(AuditFileError, match=what) as caught:
        conduct.locate(asked)
    assert got in str(caught.value.got)


def test_places(tmp_path):
    (tmp_path / "a.py").touch()
    place = conduct.locate(f"{tmp_path}/a.py:kernel")
    assert (place.root, place.file, place.name) == (tmp_path.resolve(), "a.py", "kernel")
    assert conduct.locate("some.module:kernel").module == "some.module"
    assert conduct.locate("axpy").name == "axpy"


def test_a_module_that_is_not_there(pool, tmp_path):
    with pytest.raises(AuditFileError, match="raised while it was read") as caught:
        conduct.evaluate(conduct.Question("no.such.module:kernel"), pool, tmp_path / "job")
    assert "ModuleNotFoundError" in str(caught.value.got)


def test_built_in_audits_are_read_without_jax(pool, tmp_path):
    for name in conduct.BUILT_IN:
        audit, files = conduct.evaluate(conduct.Question(name), pool, tmp_path / name)
        assert audit.name == name
        assert all(label.startswith("kernel_audit/kernels/") for label in files)
