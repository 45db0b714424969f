#!/usr/bin/env python3
"""Runs one kernel of a model file on a real TPU: every value of its output, then times. `--help` tells the rest.

    python3 projects/kernel-audit/target_tpu.py --implementation projects/kernel-audit/my_model.py \\
        --kernel fused --shape 257 513 --block 8 128 --dtype float32

Without a TPU it runs nothing, prints nothing on stdout and exits with 2.
"""

import sys
from pathlib import Path

import checkout

checkout.use()

from kernel_audit.target import main  # noqa: E402

SOLUTION = Path(__file__).resolve().parent / "solution" / "model.py"

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], target="tpu", solution=SOLUTION))
