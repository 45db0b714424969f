"""What affine index maps say about a grid of any size, without looking at its points.

Each dimension of the blocks must be driven by axes of its own, in mixed radix: sorted by size, each coefficient is the
number of values that the smaller ones take. Then the indices of a dimension are start, start + step, ..., each taken by
exactly one choice of its axes, and the visited blocks are the product over the dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kernel_audit.inspect.equation import Mapping
from kernel_audit.inspect.index_map import Affine


@dataclass(frozen=True)
class _Progression:
    """The indices along one dimension: start + step * n for n below `count`, each taken once."""

    start: int
    step: int
    count: int

    def inside(self, blocks: int) -> int:
        """How many of them lie in [0, blocks)."""
        first = max(0, -(self.start // self.step))  # the first n with start + step * n >= 0
        last = (blocks - 1 - self.start) // self.step
        return max(0, min(self.count - 1, last) - first + 1)

    def holds(self, index: int) -> bool:
        offset = index - self.start
        return offset % self.step == 0 and 0 <= offset // self.step < self.count


def proved(
    mapping: Mapping, forms: Sequence[Affine], grid: Sequence[int], semantics: Sequence[str]
) -> dict[str, Any] | None:
    """The visits of a mapping with affine indices; None where they have another form than this proof needs."""
    progressions = _progressions(forms, grid)
    if progressions is None:
        return None
    counts = mapping.counts
    driving = [axis for axis in range(len(grid)) if grid[axis] > 1 and any(form.coefficients[axis] for form in forms)]
    free = [axis for axis in range(len(grid)) if grid[axis] > 1 and axis not in driving]
    visited = math.prod(each.inside(count) for each, count in zip(progressions, counts, strict=True))
    outside = math.prod(grid) - visited * math.prod(grid[axis] for axis in free)
    again = any(axis < other for axis in free for other in driving)
    parallel = any("parallel" in semantics[axis] for axis in free if axis < len(semantics))
    found: dict[str, Any] = {
        "proof": "affine",
        "uncovered": math.prod(counts) - visited,
        "repeated": visited if free else 0,
        "revisited": visited if again else 0,
        "out_of_range": outside,
        "shared_parallel": visited if parallel else 0,
        "copies": None if outside else _copies(forms, grid),
    }
    if not outside:
        found["floor_elements"] = _elements(mapping, progressions)
        times = found["copies"] // visited if visited and found["copies"] % visited == 0 else None
        # Each block moves equally often: outer free axes repeat the whole sequence, inner ones keep the block in place.
        found["clipped_elements"] = None if times is None else found["floor_elements"] * times
    return found


def _progressions(forms: Sequence[Affine], grid: Sequence[int]) -> list[_Progression] | None:
    used: set[int] = set()
    found = []
    for form in forms:
        axes = [axis for axis in form.axes if grid[axis] > 1]
        if used & set(axes):
            return None
        used |= set(axes)
        progression = _mixed_radix(form, axes, grid)
        if progression is None:
            return None
        found.append(progression)
    return found


def _mixed_radix(form: Affine, axes: Sequence[int], grid: Sequence[int]) -> _Progression | None:
    start = form.constant + sum(min(0, form.coefficients[axis] * (grid[axis] - 1)) for axis in axes)
    ordered = sorted(axes, key=lambda axis: abs(form.coefficients[axis]))
    step = abs(form.coefficients[ordered[0]]) if ordered else 1
    count = 1
    for axis in ordered:
        if abs(form.coefficients[axis]) != step * count:
            return None
        count *= grid[axis]
    return _Progression(start, step, count)


def _copies(forms: Sequence[Affine], grid: Sequence[int]) -> int:
    """Blocks that move: when axis k steps and the later axes start again, every index changes by a constant."""
    copies = 1
    for axis, size in enumerate(grid):
        changes = any(
            form.coefficients[axis]
            != sum(form.coefficients[later] * (grid[later] - 1) for later in range(axis + 1, len(grid)))
            for form in forms
        )
        if changes and size > 1:
            copies += math.prod(grid[:axis]) * (size - 1)
    return copies


def _elements(mapping: Mapping, progressions: Sequence[_Progression]) -> int:
    """Elements inside the array over all visited blocks, each once; every index is in range."""
    total = 1
    for dim, extent, count, each in zip(mapping.dims, mapping.shape, mapping.counts, progressions, strict=True):
        missing = count * dim.size - extent if each.holds(count - 1) else 0
        total *= each.count * dim.size - missing
    return total
