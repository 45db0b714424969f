"""Modules shared by the tests of this folder, and the Python of another environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def other_python() -> str:
    """A Python whose JAX is another version: named by KERNEL_AUDIT_OTHER_PYTHON, or that of .venv-newest (see .ci/run)."""
    named = os.environ.get("KERNEL_AUDIT_OTHER_PYTHON") or str(ROOT / ".venv-newest" / "bin" / "python")
    if not Path(named).exists():
        pytest.skip("no environment with another JAX: make one with .ci/run, or name it in KERNEL_AUDIT_OTHER_PYTHON")
    return named
