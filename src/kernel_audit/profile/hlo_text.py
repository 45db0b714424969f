"""A compiled step's text without what names a folder, a file or a function of this machine, and spelled in one way."""

from __future__ import annotations

import json
import re

# Tables of jax 0.9.2 and later, after the header: each a title line and numbered lines, up to an empty line.
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_SOURCE = re.compile(r'\s*\b(?:source_file="[^"]*"|source_(?:line|end_line|column|end_column)=\d+|stack_frame_id=\d+)')
_CONFIG = re.compile(r"backend_config=(\{.*?\})(?=$|, [a-z_]+=|\s)")


def anonymous(text: str) -> str:
    """HLO text without source locations; the JSON of `backend_config`, whose keys come in any order on 0.12, sorted."""
    lines = []
    in_table = False
    for line in text.splitlines():
        if line.strip() in _TABLES:
            in_table = True
        elif not line.strip():
            in_table = False
        if in_table:
            continue
        lines.append(_CONFIG.sub(_sorted, _SOURCE.sub("", line)).rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _sorted(found: re.Match[str]) -> str:
    try:
        return "backend_config=" + json.dumps(json.loads(found.group(1)), sort_keys=True, separators=(",", ":"))
    except json.JSONDecodeError:
        return found.group(0)
