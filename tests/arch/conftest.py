"""Makes the readers of the source tree importable for the tests beside them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
