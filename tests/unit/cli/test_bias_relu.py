"""The built-in audit `bias-relu`: what it states, and what the command makes of it."""

from __future__ import annotations

import pytest

from kernel_audit.kernels.audits import BUILT_IN

AUDIT = BUILT_IN["bias-relu"]


def test_what_the_audit_states():
    assert [(each.name, each.dims) for each in AUDIT.operands] == [("x", ["m", "n"]), ("bias", ["n"])]
    assert {(each["m"], each["n"]) for each in AUDIT.shapes} >= {(1, 1), (15, 255), (16, 256), (17, 257)}
    assert AUDIT.tuning == {"block": [[8, 128], [16, 256]]}
    assert AUDIT.part and AUDIT.worth.step is None
    assert (AUDIT.values.signed_zeros, AUDIT.values.nonfinite) == (False, "propagate")
    assert AUDIT.door.keywords == {"mode": "tpu"}
    assert {each.raises for each in AUDIT.refusals} == {"ValueError"} and not any(each.names for each in AUDIT.refusals)


@pytest.mark.slow
def test_quick_check_awaits_the_target(shell):
    done = shell("check", "bias-relu", "--quick")
    assert done.returncode == 0
    assert done.stdout.startswith("decision   await-target-evidence")
    assert "audit: part-not-placed" in done.stdout
    assert "differ" not in done.stdout
