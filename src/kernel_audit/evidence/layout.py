"""Which files a bundle has, what each holds, and which names a file in it may have."""

from __future__ import annotations

MANIFEST = "manifest.json"
MANIFEST_DIGEST = "manifest.sha256"
AUDIT = "audit.json"
ENVIRONMENT = "environment.json"
CELLS = "cells.jsonl"
CONTROLS = "controls.jsonl"
REFUSALS = "refusals.jsonl"
PROGRAMS = "programs.json"
KERNELS = "kernels.json"
COMPILED = "compiled.jsonl"
WORKLOAD = "workload.json"
DECISION = "decision.json"
PAGE = "report.html"
SOURCES = "sources"
FIGURES = "figures"
PROFILES = "profile"
PROFILE = "profile/profile.json"  # where a step was profiled, with the traces beside it

RECEIPTS = "receipts"

# Every bundle has these beside the manifest and its digest; files under sources/, figures/ and receipts/ come on top, and
# workload.json where the audit states a workload.
REQUIRED = (AUDIT, ENVIRONMENT, CELLS, CONTROLS, REFUSALS, PROGRAMS, KERNELS, COMPILED, DECISION, PAGE)

_LONGEST_NAME = 1024


def is_plain_name(name: str) -> bool:
    """Whether `name` is a relative path that cannot lead out of a bundle: "sources/kernels/axpy.py".

    Plain means: parts joined by "/", none of them empty, "." or "..", no backslash and no control characters.
    """
    if not name or len(name) > _LONGEST_NAME or "\\" in name or not name.isprintable():
        return False
    return all(part not in ("", ".", "..") for part in name.split("/"))


def shown_name(name: str) -> str:
    """A file's name as text that can be printed, whatever bytes it has on the disk."""
    return name.encode("utf-8", "backslashreplace").decode()
