"""Makes modules that several test folders share importable: `import sample_evidence`."""

import signal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

# A shell's background job ignores the interrupt key, one under nohup its hang-up; so would the processes that tests start.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
