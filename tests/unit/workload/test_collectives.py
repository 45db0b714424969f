"""Collectives read from compiled text: groups in every spelling, payloads, the ring model."""

from __future__ import annotations

import pytest

from kernel_audit.contract.step_partitions import partitions
from kernel_audit.kernels.audits import BUILT_IN
from kernel_audit.workload.collectives import collectives_of, gathered_arrays, groups_of, is_whole, ring_bytes
from kernel_audit.workload.judging import gathered_whole

COMPILED = """HloModule jit_step, is_scheduled=true

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (p: f32[65], q: f32[2,64]) -> (f32[65], f32[16,64]) {
  %p = f32[65]{0} parameter(0)
  %q = f32[2,64]{1,0} parameter(1)
  %psum.1 = f32[65]{0} all-reduce(%p), channel_id=1, replica_groups=GROUPS, to_apply=%add
  %gathered = f32[16,64]{1,0} all-gather(%q), channel_id=2, replica_groups=GROUPS, dimensions={0}
  ROOT %both = (f32[65]{0}, f32[16,64]{1,0}) tuple(%psum.1, %gathered)
}
"""


@pytest.mark.parametrize(
    ("text", "groups"),
    [
        ("{{0,2,4,6},{1,3,5,7}}", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("{}", [list(range(8))]),
        ("[1,8]<=[8]", [list(range(8))]),
        ("[2,4]<=[8]", [[0, 1, 2, 3], [4, 5, 6, 7]]),
        ("[2,4]<=[4,2]T(1,0)", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("mesh['data'=8] {'data'}", [list(range(8))]),
        ("mesh['data'=4,'model'=2] {'data'}", [[0, 2, 4, 6], [1, 3, 5, 7]]),
        ("mesh['data'=4,'model'=2] {'model'}", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        ("mesh['data'=4,'model'=2] {'data','model'}", [list(range(8))]),
    ],
)
def test_groups(text: str, groups: list[list[int]]):
    assert groups_of(text, 8) == groups


@pytest.mark.parametrize("text", ["[8]", "mesh", "{0,1}{2,3}", "replicas(0,1)"])
def test_an_unknown_spelling_is_refused(text: str):
    with pytest.raises(ValueError, match="spelling"):
        groups_of(text, 8)


@pytest.mark.parametrize("groups", ["{{0,1,2,3,4,5,6,7}}", "[1,8]<=[8]", "mesh['data'=8] {'data'}"])
def test_payload_and_wire_bytes(groups: str):
    found = collectives_of(COMPILED.replace("GROUPS", groups), 8)
    assert [(each.kind, each.payload_bytes, each.wire_bytes) for each in found] == [
        ("all-reduce", 260, 455),
        ("all-gather", 512, 7 * 512),
    ]
    assert all(each.groups == [list(range(8))] and each.model == "ring" for each in found)


def test_what_is_gathered_is_told_with_dtype_and_dimensions():
    assert gathered_arrays(COMPILED) == [["f32", [16, 64]]]


@pytest.mark.parametrize(
    ("kind", "wire"),
    [
        ("all-reduce", 1500),
        ("all-gather", 3000),
        ("reduce-scatter", 750),
        ("all-to-all", 750),
        ("collective-permute", 1000),
    ],
)
def test_the_ring_model(kind: str, wire: int):
    assert ring_bytes(kind, 1000, 4) == wire
    assert ring_bytes(kind, 1000, 1) == 0


@pytest.mark.parametrize(
    ("dtype", "dims", "whole"),
    [
        ("f32", [16, 64], True),
        ("f32", [8, 2, 64], True),
        ("bf16", [64, 1, 16], True),
        ("f32", [2, 4, 2, 64], True),
        ("f32", [8, 64], False),
        ("f32", [1024], False),
        ("s32", [16, 64], False),
        ("pred", [16, 64], False),
    ],
)
def test_an_array_is_all_rows_of_an_operand_by_its_dimensions(dtype: str, dims: list[int], whole: bool):
    assert is_whole(dtype, dims, 16, [64], True) is whole


WORKLOAD = BUILT_IN["regression"].workload


def _whole(arrays) -> dict[str, list[str]]:
    steps = {each.name: {"gathered": arrays(each)} for each in partitions(1000)}
    return gathered_whole(WORKLOAD, partitions(1000), steps, {"T": "float32"})


def test_an_operand_that_is_gathered_on_partitions_of_different_rows_is_told():
    found = _whole(lambda p: [["f32", [p.rows * p.devices, 64]]])
    assert found["data=8/5"] == found["data=8/13"] == ["X"] and "data=1/8" not in found
    rows = _whole(lambda p: [["f32", [p.rows * p.devices]]])
    assert rows["data=8/13"] == ["y"] and "data=8/8" not in rows


@pytest.mark.parametrize(
    "arrays",
    [
        lambda p: [["f32", [p.devices]]],  # a loss a device: as many as there are examples at one row each
        lambda p: [["s32", [p.devices]]],  # a count a device
        lambda p: [["f32", [p.devices, 64]]],  # a gradient a device: of X's shape at one row each
        lambda p: [["f32", [64]]],  # a gradient that was scattered, brought together again
        lambda p: [["f32", [p.devices, 2]]],  # two figures a device: as many as y has at two rows each
    ],
)
def test_what_does_not_grow_with_the_rows_is_no_operand(arrays):
    assert _whole(arrays) == {}
