#!/usr/bin/env python3
"""Runs one kernel of a model file on a real GPU: every value of its output, then times. `--help` tells the rest.

    python3 projects/kernel-audit/target_gpu.py --implementation projects/kernel-audit/my_model.py \\
        --kernel fused --shape 257 513 --block 8 128 --dtype float32

Without a GPU it runs nothing, prints nothing on stdout and exits with 2. The models know no mode for a GPU: their kernels are
traced and set to compile there. The pipeline is written for TPUs and no GPU's compiler takes it: that failure is recorded.
"""

import os
import sys
from pathlib import Path

import checkout

checkout.use()
# Kernels of blocks are for Triton, on every JAX version; before 0.11 JAX would choose Mosaic, which wants other kernels.
os.environ.setdefault("JAX_PALLAS_USE_MOSAIC_GPU", "0")

from kernel_audit.target import main  # noqa: E402

SOLUTION = Path(__file__).resolve().parent / "solution" / "model.py"

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], target="gpu", solution=SOLUTION))
