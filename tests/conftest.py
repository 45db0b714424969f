"""Makes modules that several test folders share importable: `import sample_evidence`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
