"""Where a bundle may be, and that a finished one answers only what it was asked."""

from __future__ import annotations

import fcntl
import shutil

import msgspec

from kernel_audit.records import digest_bytes


def test_a_finished_bundle_does_not_answer_a_wider_or_narrower_question(finished_once):
    shell, _, _ = finished_once
    for option, arguments in (
        ("--quick", ["--quick"]),
        ("--cells", ["--cells", "generic"]),
        ("--late-seed", ["--late-seed", "7"]),
    ):
        done = shell("run", "doubling.py", *arguments, "--out", "bundle")
        assert done.returncode == 2 and f"bundle: {option}" in done.stderr, done.stderr


def test_no_bundle_is_made_inside_another(finished_once):
    shell, _, _ = finished_once
    done = shell("run", "doubling.py", "--out", "bundle/inner")
    assert done.returncode == 2 and "a place inside the bundle bundle" in done.stderr
    assert shell("verify", "bundle").returncode == 0


def test_a_running_audit_is_not_called_interrupted(shell):
    work = shell.home / "busy.partial"
    work.mkdir()
    with (work / "lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = shell("run", "doubling.py", "--out", "busy")
    assert done.returncode == 2 and "another run is at work here" in done.stderr


def test_verify_says_what_is_wrong_in_lines(finished_once, tmp_path):
    shell, _, _ = finished_once
    bundle = tmp_path / "bundle"
    shutil.copytree(shell.home / "bundle", bundle)
    cells = bundle / "cells.jsonl"
    cells.write_bytes(cells.read_bytes().replace(b"agrees", b"Agrees", 1))
    done = shell("verify", str(bundle))
    assert done.returncode == 1
    assert done.stdout.startswith("cells.jsonl: changed: ") and "Fault(" not in done.stdout
    assert "its decision cannot be relied on" in done.stdout


def test_verify_does_not_read_a_folder_that_is_no_bundle(shell):
    done = shell("verify", ".")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0].startswith("manifest.json: missing: ")
    assert len(done.stdout.splitlines()) == 2


def test_report_does_not_show_a_decision_that_the_records_do_not_give(finished_once, tmp_path):
    shell, _, _ = finished_once
    bundle = tmp_path / "bundle"
    shutil.copytree(shell.home / "bundle", bundle)
    decision = bundle / "decision.json"
    decision.write_bytes(decision.read_bytes().replace(b"await-target-evidence", b"keep"))
    manifest = bundle / "manifest.json"
    stated = msgspec.json.decode(manifest.read_bytes())
    for subject in stated["subject"]:
        if subject["name"] == "decision.json":
            subject["digest"]["sha256"] = digest_bytes(decision.read_bytes()).removeprefix("sha256:")
    manifest.write_bytes(msgspec.json.encode(stated, order="sorted"))
    done = shell("report", str(bundle))
    assert done.returncode == 2 and "another decision than its records give" in done.stderr


def test_text_of_others_cannot_pass_for_a_part_of_an_error(shell):
    (shell.home / "loud.py").write_text('raise ValueError("x\\n  next      do this")\n')
    done = shell("check", "loud.py")
    assert done.returncode == 2
    assert "            |   next      do this" in done.stderr


def test_a_page_that_shows_something_else_is_found(finished_once, tmp_path):
    shell, _, _ = finished_once
    bundle = tmp_path / "bundle"
    shutil.copytree(shell.home / "bundle", bundle)
    page, manifest = bundle / "report.html", bundle / "manifest.json"
    page.write_bytes(page.read_bytes().replace(b"Await target evidence", b"Keep the kernel"))
    stated = msgspec.json.decode(manifest.read_bytes())
    for subject in stated["subject"]:
        if subject["name"] == "report.html":
            subject["digest"]["sha256"] = digest_bytes(page.read_bytes()).removeprefix("sha256:")
    manifest.write_bytes(msgspec.json.encode(stated, order="sorted"))
    digest = digest_bytes(manifest.read_bytes()).removeprefix("sha256:")
    (bundle / "manifest.sha256").write_text(f"{digest}  manifest.json\n")
    done = shell("verify", str(bundle))
    assert done.returncode == 1 and "report.html: inconsistent" in done.stdout, done.stdout
