"""What the complete step takes and gives on a target, where it has operands of its own."""

from __future__ import annotations

import msgspec

from kernel_audit.contract.model import Audit


def has_own_operands(audit: Audit) -> bool:
    """Whether the complete step takes other operands, or other sizes, than the candidate."""
    workload = audit.workload
    if workload is None:
        return False
    sizes = audit.declared_dims
    return workload.operands != audit.operands or any(
        sizes.get(name) != size for name, size in workload.declared.items()
    )


def put_to_step(audit: Audit, dims: dict[str, int]) -> tuple[Audit, dict[str, int]]:
    """The audit with the operands that its step takes, and the sizes of these; where it takes the candidate's, as it is.

    Of the results of a step with operands of its own, its new state is known.
    """
    workload = audit.workload
    if workload is None or not has_own_operands(audit):
        return audit, dims
    state = [each for each in workload.operands if each.name in workload.state]
    return msgspec.structs.replace(audit, operands=workload.operands, results=state), workload.declared
