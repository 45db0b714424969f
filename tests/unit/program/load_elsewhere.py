"""Run as a script in a fresh process: loads every exported program in a folder, runs it, stores its results.

Nothing but the bytes and the operands is read, and no specimen can be imported from here.
"""

import pickle
import sys
from pathlib import Path

import jax
import numpy as np

from kernel_audit.program import load


def operand(kind, value):
    return jax.random.wrap_key_data(value[1], impl=value[0]) if kind == "key" else value


def main():
    for file in sorted(Path(sys.argv[1]).glob("*.program")):
        operands = pickle.loads(file.with_suffix(".operands").read_bytes())
        results = load(file.read_bytes()).executable()([operand(*each) for each in operands])
        file.with_suffix(".results").write_bytes(pickle.dumps([np.asarray(each) for each in results]))
    assert "program_specimens" not in sys.modules


main()
