"""Regimes and how often they occur."""

from __future__ import annotations

import audit_mistakes

from kernel_audit.contract.regimes import regime_texts

SHARES = {"float32": 0.25, "bfloat16": 0.75}


def test_a_regime_is_a_dtype_and_a_mode():
    assert regime_texts(audit_mistakes.declare()) == ["float32", "bfloat16"]
    both = audit_mistakes.declare(function=causal, modes={"causal": [False, True]})
    assert regime_texts(both) == [
        "float32, causal=false",
        "bfloat16, causal=false",
        "float32, causal=true",
        "bfloat16, causal=true",
    ]


def causal(x, y, *, block, causal):
    return x + y


def test_frequencies_are_kept_as_stated():
    assert audit_mistakes.declare(frequencies=SHARES).frequencies == SHARES
    assert audit_mistakes.declare().frequencies == {}
