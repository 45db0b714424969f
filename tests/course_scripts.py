"""Loads a script of the course as a module, and runs one as its reader does."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


def loaded(script: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`script`, relative to the top folder, as a module of its own. What it does to the import path ends with the test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    spec = importlib.util.spec_from_file_location(Path(script).stem, ROOT / script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # where dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def run(script: str, *arguments: str, cwd: Path, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """`python3 script arguments` in the folder `cwd`."""
    return subprocess.run([python, ROOT / script, *arguments], cwd=cwd, capture_output=True, text=True)
