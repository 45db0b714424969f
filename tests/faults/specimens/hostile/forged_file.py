"""Wrong, and writes results into the folder that it works in."""

import json
import os
from pathlib import Path

from kernel_audit.kernels.blocked_axpy import blocked_axpy

RESULT = {"outcome": "completed", "outcome_detail": "agrees", "kernel_error_max": 0.0, "ok": True}
NAMES = ("result.json", "results.json", "outcome.json", "cells.jsonl", "decision.json", "done", "receipt.json")


def axpy(x, y, block=(2, 4)):
    for folder in {Path.cwd(), Path(os.environ.get("TMPDIR", Path.cwd()))}:
        for name in NAMES:
            (folder / name).write_text(json.dumps(RESULT) + "\n")
    return blocked_axpy(y, x, block=block)
