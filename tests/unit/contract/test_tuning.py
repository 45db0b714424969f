"""Tuning for the targets that it is for: which configurations belong to a target, and what cannot be stated."""

from __future__ import annotations

import audit_mistakes
import pytest

from kernel_audit.contract import Audit, TargetTuning
from kernel_audit.contract.tuning import configurations, tables
from kernel_audit.contract.words import on
from kernel_audit.errors import AuditFileError
from kernel_audit.records import decode, encode

FORMS = [
    on("tpu", form=["tpu"], rows=[512, 1024]),
    on("gpu", form=["triton"], rows=[16], warps=[4, 8]),
    on("tpu:v6e", form=["tpu"], rows=[1024, 2048]),
]


def test_a_table_is_for_every_target():
    audit = audit_mistakes.declare(tuning={"block": [(8, 128), (16, 256)], "buffers": [2, 3]})
    every = [{"block": [8, 128], "buffers": 2}, {"block": [8, 128], "buffers": 3}]
    every += [{"block": [16, 256], "buffers": 2}, {"block": [16, 256], "buffers": 3}]
    assert audit.tuning == {"block": [[8, 128], [16, 256]], "buffers": [2, 3]}
    for found in (audit.configurations(), audit.configurations_for("tpu:v5e"), audit.configurations_for("gpu:h200")):
        assert found == every
    assert audit_mistakes.declare(tuning=None).configurations_for("gpu") == [{}]


@pytest.mark.parametrize(
    ("target", "rows"),
    [
        ("tpu:v5e", [512, 1024]),
        ("tpu:v6e", [512, 1024, 2048]),
        ("tpu", [512, 1024, 2048]),
        ("gpu:h200", [16, 16]),
        ("gpu", [16, 16]),
        (None, [512, 1024, 16, 16, 2048]),
        ("tpu:v5", [512, 1024]),
        ("cpu", []),
    ],
)
def test_products_are_for_the_targets_that_they_name(target, rows):
    assert [each["rows"] for each in configurations(FORMS, target)] == rows


def test_a_kind_of_target_is_not_taken_for_another_that_begins_alike():
    assert not on("tpu:v5e", rows=[1]).serves("tpu:v5")
    assert not on("tpu:v5", rows=[1]).serves("tpu:v5e")


def test_products_reach_the_parent_as_they_are():
    audit = audit_mistakes.declare(tuning=[on("tpu", block=[(8, 128)]), on("gpu:h200")])
    assert audit.tuning == [
        TargetTuning(targets=["tpu"], choices={"block": [[8, 128]]}),
        TargetTuning(targets=["gpu:h200"], choices={}),
    ]
    assert decode(encode(audit), Audit, where="here") == audit
    assert audit.configurations_for("gpu:h200") == [{}]
    assert tables(audit.tuning) == [("tuning[0]", {"block": [[8, 128]]}), ("tuning[1]", {})]


def test_a_decorated_candidate_must_have_the_keywords_of_every_product():
    with pytest.raises(AuditFileError, match="does not have") as caught:
        audit_mistakes.declare(function=audit_mistakes.add, tuning=[on("tpu", block=[8]), on("gpu", blok=[8])])
    assert "'blok' (did you mean 'block'?)" in str(caught.value.got)
