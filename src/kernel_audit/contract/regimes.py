"""Regimes of an audit: a choice of dtypes and modes, each decided for itself; and how often each occurs, where that is said."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

from kernel_audit.contract.model import Audit
from kernel_audit.errors import AuditFileError
from kernel_audit.records import dtype_text


def mode_text(mode: dict[str, Any]) -> str:
    """ "causal=true", or "all"."""
    return ", ".join(f"{key}={json.dumps(value)}" for key, value in sorted(mode.items())) or "all"


def regime_text(dtype: str, mode: dict[str, Any]) -> str:
    """ "bfloat16, causal=true": what `frequencies=` calls a regime; on a target its name stands before it."""
    return ", ".join([dtype, *([mode_text(mode)] if mode else [])])


def regime_texts(audit: Audit) -> list[str]:
    """All regimes of an audit on one target, in order."""
    both = itertools.product(audit.mode_choices(), audit.dtype_bindings())
    return [regime_text(dtype_text(binding), mode) for mode, binding in both]


def check_frequencies(audit: Audit) -> None:
    """Raises AuditFileError for frequencies of other regimes than the audit's, and for shares that are no whole."""
    stated, regimes = audit.frequencies, regime_texts(audit)
    if not stated:
        return
    where = f"audit {audit.name!r}: frequencies"
    if set(stated) != set(regimes):
        raise AuditFileError(
            "frequencies of other regimes than the audit has",
            stage="audit",
            where=where,
            expected=f"a share for each of: {'; '.join(regimes)}",
            got="; ".join(stated),
        )
    if any(not 0 <= each <= 1 for each in stated.values()) or not math.isclose(sum(stated.values()), 1, abs_tol=1e-6):
        raise AuditFileError(
            "frequencies that are not shares of a whole",
            stage="audit",
            where=where,
            expected="shares from 0 to 1 that sum to 1",
            got=f"{', '.join(str(each) for each in stated.values())}, together {sum(stated.values()):g}",
        )
