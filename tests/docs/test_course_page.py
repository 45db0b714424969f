"""docs/course.md: its commands name scripts, files and options that are there, and both shells are told the same."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "course.md").read_text("utf-8")
MADE_BY_THE_READER = "projects/kernel-audit/my_model.py"


def blocks(language: str) -> list[list[str]]:
    """The lines of each block of this language, in order."""
    return [found.splitlines() for found in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)]


SCRIPT_COMMANDS = sorted(set(re.findall(r"(?:^|`)(python3 [\w/-]+\.py[^`\n]*)", PAGE, re.MULTILINE)))
TARGET_COMMANDS = [each for each in SCRIPT_COMMANDS if "target_tpu.py" in each]


@cache
def help_of(script: str) -> str:
    done = subprocess.run([sys.executable, ROOT / script, "--help"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", SCRIPT_COMMANDS)
def test_a_script_and_its_options_exist(command: str):
    _, script, *arguments = shlex.split(command)
    assert (ROOT / script).is_file()
    options = {each for each in arguments if each.startswith("--")}
    if options:
        assert options <= set(re.findall(r"--[a-z-]+", help_of(script)))


@pytest.mark.parametrize("command", SCRIPT_COMMANDS)
def test_files_that_a_command_names_exist(command: str):
    named = [each for each in shlex.split(command)[2:] if each.endswith(".py")]
    assert [each for each in named if each != MADE_BY_THE_READER and not (ROOT / each).is_file()] == []


def test_what_is_copied_and_installed_exists():
    copied = re.findall(r"^(?:cp|Copy-Item) (\S+) (\S+)$", PAGE, re.MULTILINE)
    assert len(copied) == 2
    assert all((ROOT / source).is_file() and copy == MADE_BY_THE_READER for source, copy in copied)
    locks = re.findall(r"-r (\S+)$", PAGE, re.MULTILINE)
    assert set(locks) == {"requirements-cpu.txt", "requirements-tpu.txt"}
    assert all((ROOT / lock).is_file() for lock in locks)


def test_both_shells_are_told_the_same():
    """What differs between the shells is told twice; everything else is one line that both understand."""
    told = {
        ". .venv/bin/activate": "./.venv/bin/Activate.ps1",
        "export PYTHONPATH=src": '$env:PYTHONPATH = "src"',
    }
    posix, powershell = blocks("sh"), blocks("powershell")
    for ours, theirs in zip([posix[0], posix[1]], powershell, strict=True):
        assert [told.get(line, line.replace("cp ", "Copy-Item ")) for line in ours] == theirs
    shared = [line for lines in posix[2:] for line in lines]
    assert [line for line in shared if not line.startswith("python3 ") or re.search(r"[$\\;&|<>]", line)] == []


def test_the_documented_target_commands_are_there():
    """As the course types them: three, each on one line."""
    typed = [" ".join(each.split()[4:]) for each in TARGET_COMMANDS if each in blocks("sh")[-1]]
    assert typed == [
        "--kernel fused --shape 257 513 --block 8 128 --dtype float32",
        "--kernel pipeline --shape 257 513 --block 16 256 --buffers 3 --synchronous",
        "--kernel pipeline --shape 257 513 --block 8 128 --buffers 2",
    ]


def test_the_tpu_lock_says_what_it_is():
    lock = (ROOT / "requirements-tpu.txt").read_text("utf-8")
    assert "provisions no hardware" in lock and "not run on a TPU" in lock
    assert re.search(r"^jax\[?t?p?u?\]?==0\.9\.2", lock, re.MULTILINE) and re.search(r"^libtpu==", lock, re.MULTILINE)
    assert "://" not in lock
    assert not re.search(r"^libtpu", (ROOT / "requirements-cpu.txt").read_text("utf-8"), re.MULTILINE)
