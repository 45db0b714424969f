"""Prints what `inspect` says of the audits of examples/gallery (or of one), as JSON, in one process: a script.

Run by tests in the Python of another environment, so that two versions of JAX can be compared.
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

os.environ["JAX_PLATFORMS"] = "cpu"

import msgspec

from kernel_audit.conduct.inspecting import program_plans
from kernel_audit.contract import declared
from kernel_audit.matrix.audit_job import evaluate
from kernel_audit.matrix.inspect_job import inspect_programs

GALLERY = Path(__file__).parents[3] / "examples" / "gallery"


class Told:
    """The part of a job's `steps` that it uses: values by step."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def begin(self, name: str) -> None:
        del name

    def finish(self, name: str, value: Any, arrays: Any = None) -> None:
        del arrays
        self.values[name] = value


@cache
def facts(name: str) -> list[dict[str, Any]]:
    """The kernels of one audit of the gallery, in order."""
    declared.clear()
    audit = evaluate(Told(), root=str(GALLERY), file=f"{name}.py", module=None, name=None)["audit"]
    record = declared[0]
    plans = msgspec.to_builtins(program_plans(record, record.targets))
    targets = record.targets
    told = Told()
    inspect_programs(
        told,
        audit=audit,
        roots=[str(GALLERY)],
        programs=plans,
        targets=targets,
    )
    found = []
    for plan in plans:
        value = told.values[plan["key"]]
        assert "kernels" in value, (name, value)
        assert value["kernels"], (name, plan["key"])
        found += value["kernels"]
    return found


if __name__ == "__main__":
    names = sys.argv[1:] or sorted(each.stem for each in GALLERY.glob("*.py"))
    print(json.dumps({name: facts(name) for name in names}))
