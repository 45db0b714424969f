"""Checks a model file stage by stage: see `--help`, and docs/course.md for what each line means."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import checkout

TOP = checkout.use()

from kernel_audit.course.command import main  # noqa: E402  (importable from here on)

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], solution=TOP / "projects" / "kernel-audit" / "solution" / "model.py"))
