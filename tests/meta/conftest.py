"""Makes the readers of tests/arch importable: their tests must be able to fail, too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "arch"))
