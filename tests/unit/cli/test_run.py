"""`run` from the outside: a bundle, exit codes, and what it says to a request that it cannot honour."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest


def test_a_run_ends_in_a_bundle(finished_once):
    shell, done, _ = finished_once
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "decision   await-target-evidence"
    assert lines[-1] == "page       bundle/report.html"
    assert any(line.startswith("next       on a tpu:v5e device: kernel-audit measure") for line in lines)
    assert sorted(each.name for each in shell.home.iterdir()) == ["bundle", "doubling.py"]
    assert shell("verify", "bundle").returncode == 0
    assert shell.left() == []


def test_progress_is_plain_lines_on_stderr(finished_once):
    _, done, _ = finished_once
    assert "reading block shapes" in done.stderr and "checking:" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_a_second_run_says_that_it_is_finished(finished_once, records):
    shell, _, _ = finished_once
    before = records(shell.home / "bundle")
    again = shell("run", "doubling.py", "--out", "bundle")
    assert again.returncode == 0
    assert again.stdout.startswith("The bundle bundle is finished; nothing was run again.\n\ndecision   await")
    assert again.stderr == ""
    assert records(shell.home / "bundle") == before


def test_json_is_one_record_and_nothing_else(finished_once):
    shell, _, _ = finished_once
    for arguments in (["run", "doubling.py", "--out", "bundle"], ["decide", "bundle"]):
        done = shell(*arguments, "--json")
        assert json.loads(done.stdout)["decision"] == "await-target-evidence"
        assert done.stderr == ""
    assert json.loads(shell("report", "bundle", "--json").stdout)["cells"][0]["outcome"] == "agrees"
    assert json.loads(shell("verify", "bundle", "--json").stdout) == {"bundle": "bundle", "faults": []}


@pytest.mark.parametrize(("asked", "code"), [("await-target-evidence", 0), ("keep", 1), ("revise", 1)])
def test_a_required_decision(finished_once, asked, code):
    shell, _, _ = finished_once
    done = shell("run", "doubling.py", "--out", "bundle", "--require", asked)
    assert done.returncode == code
    assert ("--require" in done.stderr) == (code == 1)


def test_other_commands_on_a_bundle(finished_once, tmp_path):
    shell, _, _ = finished_once
    assert shell("decide", "bundle").returncode == 0
    assert "Review" in shell("report", "bundle").stdout
    assert shell("report", "bundle", "--html", str(tmp_path / "page.html")).returncode == 0
    assert (tmp_path / "page.html").read_bytes() == (shell.home / "bundle" / "report.html").read_bytes()
    inside = shell("report", "bundle", "--html", "bundle/other.html")
    assert inside.returncode == 2 and "a page inside the bundle" in inside.stderr


def test_a_changed_byte_is_found(finished_once, tmp_path):
    shell, _, _ = finished_once
    copy = shutil.copytree(shell.home / "bundle", tmp_path / "copy")
    cells = (copy / "cells.jsonl").read_bytes()
    (copy / "cells.jsonl").write_bytes(cells.replace(b'"agrees"', b'"differs"', 1))
    done = shell("verify", str(copy))
    assert done.returncode == 1 and "cells.jsonl" in done.stdout


def test_a_finished_bundle_answers_its_own_question_only(finished_once, tmp_path):
    shell, _, _ = finished_once
    bundle = str(shell.home / "bundle")
    for change, arguments in (
        ("other.py", ["other.py"]),
        ("--candidate", ["doubling.py", "--candidate", "doubling.py:triple"]),
        ("doubling.py", ["doubling.py"]),
    ):
        home = tmp_path / change.strip("-")
        home.mkdir()
        text = (shell.home / "doubling.py").read_text()
        (home / "other.py").write_text(text)
        (home / "doubling.py").write_text(text + ("\n# later\n" if change == "doubling.py" else ""))
        shell_there = type(shell)(home)
        done = shell_there("run", *arguments, "--out", bundle)
        assert done.returncode == 2, change
        assert "a finished bundle of another audit, or of sources that have changed since" in done.stderr
        assert f"bundle: {'doubling.py' if change == 'doubling.py' else 'AUDIT'}" in done.stderr


def test_a_candidate_of_another_file_is_revised(shell):
    source = (shell.home / "doubling.py").read_text()
    (shell.home / "tripling.py").write_text(
        source.partition("@audit")[0] + "def triple" + source.partition("def triple")[2]
    )
    done = shell("check", "doubling.py", "--candidate", "tripling.py:triple", "--cells", "generic", "--json")
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["decision"]["decision"] == "revise"
    assert told["decision"]["findings"][0]["code"] == "values-differ"
    assert {each["engine"] for each in told["cells"]} == {"generic"}
    assert shell.left() == []


WRONG_REQUESTS = {
    "no-command": (["runn", "doubling.py"], "No such command 'runn' (did you mean 'run'?)"),
    "no-audit": (["run", "axpi"], "'axpi' (did you mean 'axpy'?)"),
    "no-file": (["run", "nowhere.py"], "no such audit file"),
    "no-such-name": (["run", "doubling.py:dubble"], "'dubble' (did you mean 'double'?)"),
    "no-candidate-file": (["check", "doubling.py", "--candidate", "nowhere.py:f"], "no such candidate file"),
    "no-candidate-form": (["run", "doubling.py", "--candidate", "nothing"], "a function's place that cannot be read"),
    "no-cells": (["run", "doubling.py", "--cells", "generik"], "'generik' (did you mean 'generic'?)"),
    "no-number": (["run", "doubling.py", "--deadline", "soon"], "Invalid value for '--deadline'"),
    "no-argument": (["run"], "Missing argument 'AUDIT'"),
    "no-bundle": (["verify", "nowhere"], "no such bundle"),
    "no-bundle-to-decide": (["decide", "nowhere"], "missing evidence"),
    "no-code": (["explain", "values-difer"], "'values-difer' (did you mean 'values-differ'"),
    "out-below-a-file": (["run", "doubling.py", "--out", "doubling.py/x"], "a place that cannot be written"),
    "out-nowhere": (["run", "doubling.py", "--out", "/proc/none/x"], "a place that cannot be written"),
    "out-is-a-file": (["run", "doubling.py", "--out", "doubling.py"], "something else is at the place of the bundle"),
    "out-has-no-name": (["run", "doubling.py", "--out", "."], "no bundle can be made at this place"),
}


@pytest.mark.parametrize("name", WRONG_REQUESTS)
def test_a_request_that_cannot_be_honoured(shell, name):
    arguments, said = WRONG_REQUESTS[name]
    done = shell(*arguments)
    assert done.returncode == 2
    assert said in done.stderr and done.stdout == ""
    assert [each.name for each in shell.home.iterdir() if each.name != "evidence"] == ["doubling.py"]
    assert list(shell.home.glob("evidence/*")) == []  # no interrupted audit is left to be resumed
    assert shell.left() == []


def test_the_place_of_a_bundle_where_none_is_named():
    from kernel_audit.cli.run import _name

    assert [_name(each) for each in ("axpy", "a/doubling.py", "doubling.py:double", "m.n:f")] == [
        "axpy",
        "doubling",
        "double",
        "f",
    ]


def test_help_names_every_command(shell):
    done = shell("--help")
    assert done.returncode == 0
    for name in ("run", "check", "decide", "verify", "report", "explain", "doctor"):
        assert f"  {name} " in done.stdout
        assert shell(name, "--help").returncode == 0


def test_explanations(shell):
    listed = shell("explain")
    assert "values-differ" in listed.stdout and listed.returncode == 0
    one = json.loads(shell("explain", "values-differ", "--json").stdout)
    assert one["subject"] == "kernel" and one["effect"] == "revise"
    assert "resolve" in shell("explain", "values-differ").stdout


def test_a_fault_of_ours_is_told_without_a_traceback(monkeypatch, capsys, tmp_path):
    from kernel_audit import cli

    monkeypatch.setattr(cli.cli, "main", lambda **given: 1 / 0)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr().err
    assert ended.value.code == 70
    assert "ZeroDivisionError" in said and "Traceback" not in said
    (report,) = Path(tmp_path).glob("kernel-audit-fault-*.txt")
    assert "Traceback" in report.read_text() and report.name in said
