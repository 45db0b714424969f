"""Refuses by name what a JAX version does wrong without saying so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax

from kernel_audit.errors import EnvironmentFault
from kernel_audit.program import compat
from kernel_audit.program.modes import Mode

if TYPE_CHECKING:
    from kernel_audit.program.capture import Program


def refuse_by_name(program: Program, mode: Mode) -> None:
    """Raises EnvironmentFault, naming the fault, when this JAX is known to run `program` wrongly in `mode`.

    Also for a JAX version outside the supported range. `Program.executable` and `Program.export` ask this first.
    """
    compat.require_supported_jax()
    version = compat.jax_version()
    for kernel in program.kernels:
        for fault in compat.KNOWN_FAULTS:
            if fault.primitive != kernel.primitive or fault.mode != mode.name:
                continue
            if fault.first <= version < fault.fixed:
                raise EnvironmentFault(
                    f"{fault.name}: {fault.what}",
                    stage="run",
                    where=f"kernel {kernel.name} at {kernel.path}, mode {mode.name}",
                    expected=f"jax {'.'.join(map(str, fault.fixed))} or later",
                    got=f"jax {jax.__version__}",
                    next_command="use the TPU interpreter for this kernel, or a later JAX",
                )
