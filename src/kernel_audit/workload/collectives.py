"""Collectives of a compiled step: what they carry, between whom, and what a ring would send. Plain text in, plain data out."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernel_audit.records import Collective, StepCollective
from kernel_audit.target.hlo import parse_module
from kernel_audit.target.summary import summary_of
from kernel_audit.target.traffic import movements

_LISTED = re.compile(r"\{\{[\d,{}]*\}\}")
_IOTA = re.compile(r"\[(?P<shape>[\d,]+)\]<=\[(?P<from>[\d,]+)\](?:T\((?P<order>[\d,]+)\))?")
_BY_AXES = re.compile(r"mesh\[(?P<mesh>[^\]]*)\]\s*\{(?P<axes>[^}]*)\}")


def collectives_of(text: str, devices: int) -> list[StepCollective]:
    """The collectives of a compiled step over so many devices, in program order; loops counted in `trips`.

    Raises ValueError for groups that are written in a way that nobody knows: a guess would be a wrong figure.
    """
    module = parse_module(text)
    spelled = _groups_as_written(text)
    found = summary_of(list(movements(module, {})), {}).collectives
    return [_one(each, spelled, devices) for each in found]


def gathered_arrays(text: str) -> list[list[Any]]:
    """[dtype in HLO's spelling, dimensions] of each result of an all-gather."""
    return [
        [array.dtype, list(array.dims)]
        for computation in parse_module(text).computations.values()
        for each in computation.instructions
        if each.opcode.removesuffix("-start") == "all-gather"
        for array in each.results
    ]


def is_whole(dtype: str, dims: Sequence[int], examples: int, rest: Sequence[int], floating: bool) -> bool:
    """Whether a gathered array can be all rows of an operand: its other dimensions are there, in whatever order, and what is
    left of the array counts the rows. A compiler may widen or a step narrow what is gathered: of dtypes the kind counts."""
    if dtype.startswith(("f", "bf")) != floating:
        return False
    left = Counter(each for each in dims if each != 1)
    wanted = Counter(each for each in rest if each != 1)
    return not wanted - left and math.prod((left - wanted).elements()) == examples


def ring_bytes(kind: str, payload: int, group: int) -> int:
    """What one device of a ring of `group` sends, for `payload` bytes put in by it.

    All-reduce 2 (g-1)/g of its payload (reduce-scatter, then all-gather); all-gather g-1 times it; reduce-scatter and
    all-to-all (g-1)/g of it; permute all of it. After Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters
    of workstations", 2009.
    """
    if group <= 1:
        return 0
    share = (group - 1) / group
    factor = {"all-reduce": 2 * share, "all-gather": group - 1, "reduce-scatter": share, "all-to-all": share}
    return round(factor.get(kind, 1) * payload)


def groups_of(text: str, devices: int) -> list[list[int]]:
    """Groups in any of the spellings of XLA: {{0,1},{2,3}}, [2,2]<=[4], [2,2]<=[2,2]T(1,0), mesh['data'=2,'model'=2] {'data'}.

    The empty list of groups is one of all devices. Raises ValueError for another spelling.
    """
    text = text.strip()
    if text in ("", "{}", "{{}}"):
        return [list(range(devices))]
    if _LISTED.fullmatch(text):
        return [[int(each) for each in group.split(",") if each] for group in re.findall(r"\{([\d,]*)\}", text[1:-1])]
    if iota := _IOTA.fullmatch(text):
        places = np.arange(math.prod(_numbers(iota["from"]))).reshape(_numbers(iota["from"]))
        if iota["order"]:
            places = places.transpose(_numbers(iota["order"]))
        return places.reshape(_numbers(iota["shape"])).tolist()
    if named := _BY_AXES.fullmatch(text):
        return _along_axes(named["mesh"], re.findall(r"'([^']*)'", named["axes"]))
    raise ValueError(f"replica groups in a spelling that is not known: {text[:80]!r}")


def _numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def _along_axes(mesh: str, axes: list[str]) -> list[list[int]]:
    sizes = {name: int(size) for name, size in re.findall(r"'([^']*)'=(\d+)", mesh)}
    names = list(sizes)
    places = np.arange(math.prod(sizes.values())).reshape(list(sizes.values()))
    inside = [names.index(axis) for axis in axes]
    outside = [index for index in range(len(names)) if index not in inside]
    return places.transpose([*outside, *inside]).reshape(-1, math.prod(sizes[axis] for axis in axes)).tolist()


def _groups_as_written(text: str) -> dict[str, list[str]]:
    """The groups of each kind of collective in the order of the text."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        kind = re.search(r"\s(all-reduce|all-gather|reduce-scatter|all-to-all)(?:-start)?\(", line)
        groups = re.search(
            r"replica_groups=(\{\{.*?\}\}|\{\}|\[[^\]]*\]<=\[[^\]]*\](?:T\([\d,]*\))?|mesh\[.*?\]\s*\{.*?\})", line
        )
        if kind and groups:
            found.setdefault(kind[1], []).append(groups[1])
    return found


def _one(each: Collective, spelled: dict[str, list[str]], devices: int) -> StepCollective:
    if each.kind == "collective-permute":
        groups: list[list[int]] = []
        wire = each.payload_bytes
    else:
        texts = spelled.get(each.kind) or [each.replica_groups]
        groups = groups_of(texts.pop(0) if len(texts) > 1 else texts[0], devices)
        wire = ring_bytes(each.kind, each.payload_bytes, max(len(group) for group in groups))
    return StepCollective(
        kind=each.kind, payload_bytes=each.payload_bytes, wire_bytes=wire, groups=groups, trips=each.trips
    )
