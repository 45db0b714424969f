"""What the author of an audit file reads about a mistake: run with UPDATE_GOLDEN=1 to write the texts again."""

from __future__ import annotations

import os
from pathlib import Path

import audit_mistakes
import pytest

from kernel_audit.errors import AuditFileError

FILE = Path(__file__).parent / "files" / "audit-file-errors.txt"
SHOWN = (
    *(
        "vary-unknown-dimension",
        "vary-refuses-declared-size",
        "no-baseline",
        "lambda-as-baseline",
        "operand-unreadable",
    ),
    *("unknown-dtype", "unjudged-dtype", "dimension-with-two-sizes", "dimension-without-size", "sequence-empty"),
    *("tuning-unknown-parameter", "unknown-family", "refusal-unknown-operand", "margin-no-share", "targets-as-text"),
    *("ablation-as-a-number", "ablation-of-a-mode", "ablation-unknown-keyword"),
)


def test_texts():
    blocks = []
    for name in SHOWN:
        with pytest.raises(AuditFileError) as caught:
            audit_mistakes.declare(**dict(audit_mistakes.MISTAKES[name][0]))
        blocks.append(f"# {name}\n{caught.value}\n")
    text = "\n".join(blocks)
    if os.environ.get("UPDATE_GOLDEN"):
        FILE.write_text(text, encoding="utf-8")
    assert text == FILE.read_text(encoding="utf-8")
