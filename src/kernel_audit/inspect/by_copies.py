"""Ownership and bytes of a kernel that copies by itself, from the copies that its control makes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kernel_audit.inspect.control import Copied
from kernel_audit.inspect.equation import Mapping
from kernel_audit.inspect.ownership import Visits


def visits_by_copies(mapping: Mapping, copies: Sequence[Copied]) -> tuple[Visits, tuple[int, ...], int]:
    """(visits, block shape, bytes moved) of one operand or result that lies in main memory.

    The block is the largest window that is copied. What a kernel reads back of a result is moved, and writes nothing:
    ownership is that of the copies that write. Coverage is told where their windows are whole blocks.
    """
    every = [each for each in copies if each.label == (mapping.role, mapping.position)]
    moved = sum(each.bytes for each in every)
    own = [each for each in every if each.writes or mapping.role == "input"]
    if not own or not math.prod(mapping.shape):
        return Visits("copies", int(bool(math.prod(mapping.shape))), 0, 0, 0, 0, len(every)), mapping.shape, moved
    block = tuple(max(each.sizes[dim] for each in own) for dim in range(len(mapping.shape)))
    if any(each.starts is None for each in every):
        return Visits("data-dependent", copies=len(every)), block, moved
    return _visits(mapping, np.array(block, np.int64), every, own), block, moved


def _visits(mapping: Mapping, size: np.ndarray, every: Sequence[Copied], own: Sequence[Copied]) -> Visits:
    extent = np.array(mapping.shape, np.int64)
    known: dict[str, Any] = {"copies": len(every), "clipped_elements": int(_inside(every, extent).prod(axis=1).sum())}
    starts = _starts(own, extent)
    outside = ((starts < 0) | (starts >= extent)).any(axis=1)
    known["out_of_range"] = int(outside.sum())
    if not size.all() or (starts % size).any():
        return Visits("copies", **known)
    counts = -(-extent // size)
    linear = np.zeros(len(own), np.int64)
    if len(size):
        linear = np.ravel_multi_index(tuple((starts // size)[~outside].T), tuple(counts))
    found = replace(_counted(linear, counts, extent, size), **known)
    # A window that is smaller than its block leaves a part of it to others: then blocks say nothing of coverage.
    whole = (_inside(own, extent) == np.clip(extent - starts, 0, size))[~outside].all(axis=1)
    if np.unique(linear[whole]).size < np.unique(linear).size:
        return replace(found, uncovered=None, floor_elements=None, linear=None)
    return found


def _counted(linear: np.ndarray, counts: np.ndarray, extent: np.ndarray, size: np.ndarray) -> Visits:
    """Visits of copies by the number of their block, in order."""
    visited, times = np.unique(linear, return_counts=True)
    changes = np.ones(linear.size, bool)
    changes[1:] = linear[1:] != linear[:-1]
    _, runs = np.unique(linear[changes], return_counts=True)
    return Visits(
        proof="copies",
        uncovered=math.prod(counts.tolist()) - visited.size,
        repeated=int((times > 1).sum()),
        revisited=int((runs > 1).sum()),
        shared_parallel=0,
        floor_elements=_elements(visited, counts, extent, size),
        linear=linear,
    )


def _starts(copies: Sequence[Copied], extent: np.ndarray) -> np.ndarray:
    return np.array([each.starts for each in copies], np.int64).reshape(len(copies), len(extent))


def _inside(copies: Sequence[Copied], extent: np.ndarray) -> np.ndarray:
    """Elements of each window that lie inside the array, along each dimension."""
    sizes = np.array([each.sizes for each in copies], np.int64).reshape(len(copies), len(extent))
    return np.clip(np.minimum(extent - _starts(copies, extent), sizes), 0, None)


def _elements(visited: np.ndarray, counts: np.ndarray, extent: np.ndarray, size: np.ndarray) -> int:
    """Elements inside the array of each visited block once."""
    if not len(size):
        return visited.size
    indices = np.array(np.unravel_index(visited, tuple(counts))).T
    return int(np.clip(extent - indices * size, 0, size).prod(axis=1).sum())
