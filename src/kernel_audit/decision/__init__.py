"""Rules, reason codes, the review, and the decision: plain data in, plain data out. No JAX."""

from kernel_audit.decision.decide import decide, exit_code
from kernel_audit.decision.finding import finding
from kernel_audit.decision.reasons import Reason, reasons
from kernel_audit.decision.receipts import Counted, counted
from kernel_audit.decision.rules import declared_targets
from kernel_audit.decision.verify import verify
from kernel_audit.decision.worth import sound

__all__ = [
    "Counted",
    "Reason",
    "counted",
    "decide",
    "declared_targets",
    "exit_code",
    "finding",
    "reasons",
    "sound",
    "verify",
]
