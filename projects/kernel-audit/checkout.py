"""Makes the package importable from a checkout or an unpacked archive, installed or not.

    import checkout; checkout.use()     # before anything of kernel_audit is imported

Scripts of this folder find it beside them; others put this folder on `sys.path` first. Workers are processes of their own and
learn of the place by PYTHONPATH.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SOURCES = TOP / "src"


def use() -> Path:
    """Puts `src` first on `sys.path` and in PYTHONPATH; the checkout's top folder."""
    if str(SOURCES) not in sys.path:
        sys.path.insert(0, str(SOURCES))
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(SOURCES) not in known:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(SOURCES), *[each for each in known if each]])
    return TOP
