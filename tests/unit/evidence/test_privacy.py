"""A bundle does not say where it was made."""

from pathlib import Path

import pytest

from kernel_audit.evidence import machine_names, private_text


@pytest.mark.parametrize(
    "text",
    [
        '"file":"/home/ada/kernels/axpy.py"',
        "File /root/x/y.py, line 3",
        "in (/tmp/ab12/out.bin)",
        "path=/opt/venv/lib/python3.11/site-packages/jax/core.py",
        "file:///srv/data/x",
        r"C:\Users\ada\kernel.py",
        "see ~ada/kernel.py",
    ],
)
def test_paths_of_a_machine_are_found_with_their_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "cells.jsonl").write_text(f"{{}}\n{text}\n")
    found = private_text(tmp_path)
    assert [(each.file, each.kind, each.line) for each in found][:1] == [("cells.jsonl", "private", 2)]


@pytest.mark.parametrize(
    "text",
    [
        '"id":"generic/9x129-normal/bfloat16/block=8x128,buffers=2"',
        "https://in-toto.io/Statement/v1",
        "</td></tr> <path d='M0,0L1/2'/> font: 1rem/1.55 sans-serif; /* note */",
        "a and/or b, 1/2, x @ y, kernels/axpy.py, ./x/y, ../x/y, ~1e-3, a // b / c",
        "jit:double/pallas_call#0",
        "#!/usr/bin/env python",
    ],
)
def test_ordinary_text_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "report.html").write_text(text)
    assert private_text(tmp_path, machine_names()) == []


def test_names_of_the_machine_are_found_as_words(tmp_path: Path) -> None:
    (tmp_path / "environment.json").write_text('{"platform":"Linux on build-host-7"}')
    assert [each.kind for each in private_text(tmp_path, ["build-host-7"])] == ["private"]
    assert private_text(tmp_path, ["build"]) == []


def test_pictures_are_not_text_and_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "gap.png").write_bytes(b"/home/ada/x")
    (tmp_path / "cells.jsonl").symlink_to("/etc/hostname")
    assert [each.kind for each in private_text(tmp_path)] == ["unreadable"]


def test_a_written_bundle_is_private(bundle: Path) -> None:
    assert private_text(bundle, machine_names()) == []
