"""The correctness matrix: plan, programs and cells in workers, comparison, controls.

Modules are imported by name, `check` first: what a worker runs (`*_job`) loads JAX, what plans and compares does not.
"""

__all__: list[str] = []
