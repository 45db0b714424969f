"""The complete step profiled: compiled apart from warm steps, traced in a pass of its own, every instant given to a region.

JAX is imported with the modules that need it; what reads planes, attributes and sweeps is plain data in, plain data out.
"""

from kernel_audit.profile.attribution import Attribution, Place
from kernel_audit.profile.hlo_text import anonymous
from kernel_audit.profile.planes import Operation, Trace, read_planes, read_trace
from kernel_audit.profile.redaction import Redactor, host_names
from kernel_audit.profile.sweep import Swept, sweep

__all__ = [
    "Attribution",
    "Operation",
    "Place",
    "Redactor",
    "Swept",
    "Trace",
    "anonymous",
    "host_names",
    "read_planes",
    "read_trace",
    "sweep",
]
