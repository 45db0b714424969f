"""A device machine, as far as imports go: five packages, what they bring, and the standard library."""

from __future__ import annotations

_GUARD = """
import importlib.abc, sys
import jax, jax.export, jax.experimental.pallas, jax.experimental.pallas.tpu{more}
import msgspec, ml_dtypes, numpy, flatbuffers

brought = {{name.partition(".")[0] for name in sys.modules}}

class OnlyThese(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in brought | {{"kernel_audit"}} | set(sys.stdlib_module_names):
            raise ImportError(f"not on a device machine: {{name}}")

sys.meta_path.insert(0, OnlyThese())
if len(sys.argv) > 1:
    import click
{imports}
print("imported")
"""


def importing(imports: str, *, more: str = "") -> str:
    """A script that imports on such a machine; with an argument it tries click first, which is not there. `more` are further
    modules of JAX, as ", jax.x"."""
    return _GUARD.format(more=more, imports=imports.strip())
