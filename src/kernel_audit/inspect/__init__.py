"""Kernels read from a traced program: who owns which block, how many bytes move, what fits, what is certainly wrong.

    program = capture(kernel, (jax.ShapeDtypeStruct((257, 513), "float32"),) * 2)
    for found in inspect_program(program):
        found.grid, found.ownership.uncovered, found.bytes.moved, found.findings

Nothing of the program runs. Values that steer index maps are taken from constants of the program, or from `values=`.
Importing this package imports JAX.
"""

from kernel_audit.inspect.calculations import calculations
from kernel_audit.inspect.program_inspection import inspect_program

__all__ = ["calculations", "inspect_program"]
