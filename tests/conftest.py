"""Makes modules that several test folders share importable: `import sample_evidence`."""

import signal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

# A shell's background job ignores the interrupt key, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
