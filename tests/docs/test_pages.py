"""What the pages say is there: commands, links, make targets, and the generated pages are as the program makes them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_audit.cli import COMMANDS, cli
from kernel_audit.decision import reasons

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "changelog.d").glob("*.md")),
]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def scripts_docs(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts" / "docs"), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def copied(folder: Path) -> Path:
    """The pages that scripts/docs looks at, in a folder of their own."""
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "README.md", folder)
    return folder


def test_generated_pages_are_current():
    done = scripts_docs("--check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", ["docs/commands.md", "docs/reasons.md"])
def test_a_stale_page_is_named(page: str, tmp_path: Path):
    (copied(tmp_path) / page).write_text("edited by hand")
    done = scripts_docs("--check", str(tmp_path))
    assert done.returncode == 1
    assert done.stdout.startswith(page)


@pytest.mark.slow
def test_shown_outputs_are_real():
    """Runs every command that a page shows with its output."""
    done = scripts_docs("--check", "--outputs")
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_command_and_reason_has_its_place():
    commands, codes = ((ROOT / "docs" / f"{each}.md").read_text("utf-8") for each in ("commands", "reasons"))
    assert [each for each in COMMANDS if f"## {each}\n" not in commands] == []
    assert [each for each in reasons() if f"| `{each}` |" not in codes] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_and_options_that_are_named_exist(page: Path):
    """Every `kernel-audit NAME` in a line of code, and each of its options."""
    for line in page.read_text("utf-8").splitlines():
        for found in re.finditer(r"(?:^    |`|^\$ |bin/)kernel-audit ([a-z]+)((?: +(?:--)?[\w./:-]+)*)", line):
            if found[1] == "measure":  # a decision names it; README.md says that it is not there yet
                continue
            command = COMMANDS.get(found[1]) and cli.get_command(None, found[1])
            assert command, f"{line}: no command {found[1]!r}"
            known = {option for parameter in command.params for option in parameter.opts}
            assert set(re.findall(r" (--[a-z-]+)", found[2])) <= known, line


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_files_and_links_exist(page: Path):
    text = page.read_text("utf-8")
    linked = [each for each in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in each]
    missing = [each for each in linked if not (page.parent / each).exists()]
    named = re.findall(r"`((?:src|tests|docs|scripts|examples|changelog\.d|\.ci)/[\w./-]+)`", text)
    missing += [each for each in named if not (ROOT / each).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_make_targets_exist(page: Path):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:`|^    )make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE))
    assert named <= targets


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_lines_fit(page: Path):
    """Rows of tables, links and commands apart, which cannot be broken."""
    lines = page.read_text("utf-8").splitlines()
    assert [line for line in lines if len(line) > 128 and not line.startswith(("|", "- [", "python3 "))] == []


def test_the_rejected_kernel_comes_first():
    readme = (ROOT / "README.md").read_text("utf-8")
    opening = readme.index("Does this custom JAX/Pallas kernel earn its complexity")
    assert opening < readme.index("decision   revise") < readme.index("decision   await-target-evidence")
    assert readme.index("decision   await-target-evidence") < readme.index("make audit") < readme.index("make test")


def test_the_kernel_that_is_shown_is_the_one_that_was_run():
    shown = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    assert shown is not None
    assert (ROOT / "examples" / "silu_cut_short.py").read_text("utf-8").endswith(shown[1])
