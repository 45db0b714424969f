"""Wrong, and replaces what it finds of the audit in its own process."""

import sys

from kernel_audit.kernels.blocked_axpy import blocked_axpy


def _agree(*_, **__):
    return []


for _name, _module in list(sys.modules.items()):
    if _name.startswith("kernel_audit.") and not _name.startswith("kernel_audit.kernels"):
        for _attribute in ("compare", "digest", "find_kernels", "canonical", "check", "encode"):
            if hasattr(_module, _attribute):
                setattr(_module, _attribute, _agree)


def axpy(x, y, block=(2, 4)):
    return blocked_axpy(y, x, block=block)
