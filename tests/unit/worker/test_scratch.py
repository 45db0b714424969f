"""A folder at work is nobody's to remove; one whose process is gone is."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from kernel_audit.worker.scratch import PREFIX, scratch_folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_goes_with_its_context(temporary: Path) -> None:
    with scratch_folder() as folder:
        assert folder.parent == temporary and folder.is_dir()
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text("")
    assert list(temporary.iterdir()) == []


def test_what_is_held_stays_and_what_nobody_holds_goes(temporary: Path) -> None:
    left, other = temporary / f"{PREFIX}left", temporary / "kernel-audit-of-somebody"
    for each in (left, other):
        each.mkdir()
        (each / "file").write_text("")
    (temporary / f"{PREFIX}link").symlink_to(other)
    with scratch_folder() as first, scratch_folder() as second:
        assert first.is_dir() and second.is_dir()
        assert not left.exists() and (other / "file").exists()


def test_the_folder_of_a_killed_process_goes(temporary: Path) -> None:
    code = "import os; from kernel_audit.worker.scratch import scratch_folder\nwith scratch_folder(): os.kill(os.getpid(), 9)"
    environment = {"TMPDIR": str(temporary)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == -9
    assert len(list(temporary.glob(f"{PREFIX}*"))) == 1
    with scratch_folder() as folder:
        assert list(temporary.iterdir()) == [folder]
