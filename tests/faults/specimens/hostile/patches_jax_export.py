"""Exports another function than the one it is asked to."""

import jax
from jax import export

from kernel_audit.kernels.blocked_axpy import blocked_axpy

_authentic = export.export


def _export(function, *arguments, **options):
    return _authentic(jax.jit(lambda x, *rest: x), *arguments, **options)


export.export = _export


def axpy(x, y, block=(2, 4)):
    return blocked_axpy(x, y, block=block)
