"""A finding by its code."""

from __future__ import annotations

from collections.abc import Iterable

from kernel_audit.decision.reasons import reasons
from kernel_audit.records import Finding


def finding(code: str, text: str, records: Iterable[str] = (), scope: str = "any target") -> Finding:
    """A finding whose subject is that of its code."""
    return Finding(code=code, subject=reasons()[code].subject, text=text, scope=scope, records=sorted(set(records)))
