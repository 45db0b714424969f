"""Ablations as an audit file states them: what is kept of each form, and which configurations a twin has."""

from __future__ import annotations

import audit_mistakes

from kernel_audit.contract.ablations import twin_configurations
from kernel_audit.contract.model import Ablation, FunctionRef
from kernel_audit.contract.words import built_by

FLAT = FunctionRef(file="kernel.py", name="flat")


def flat(x, y, *, block):
    return x + y


def test_a_function_a_place_a_factory_and_changed_keywords():
    stated = {
        "own": flat,
        "flat": "kernel.py:flat",
        "made": built_by("kernel.py:flat"),
        "small": {"block": (1, 8)},
    }
    audit = audit_mistakes.declare(function=audit_mistakes.add, ablations=stated)
    own, place, made, small = audit.ablations
    assert own.function.name == "flat" and own.function.module == __name__
    assert place == Ablation(name="flat", function=FLAT)
    assert made.function.factory
    assert small == Ablation(name="small", changed={"block": [1, 8]})


def test_an_audit_names_none_unless_it_says_so():
    assert audit_mistakes.declare().ablations == []
    assert audit_mistakes.declare(ablations={}).ablations == []


def test_a_twin_has_the_configurations_of_the_candidate_with_what_it_changes_each_once():
    configurations = [{"block": 8, "buffers": 2}, {"block": 8, "buffers": 3}, {"block": 16, "buffers": 2}]
    assert twin_configurations(Ablation(name="flat", function=FLAT), configurations) == configurations
    one = Ablation(name="one-buffer", changed={"buffers": 1})
    assert twin_configurations(one, configurations) == [{"block": 8, "buffers": 1}, {"block": 16, "buffers": 1}]
