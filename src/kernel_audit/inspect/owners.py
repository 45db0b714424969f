"""Who writes which block, for a drawing: the first and the last blocks of the last two dimensions of a result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernel_audit.inspect.moved import Moved
from kernel_audit.records import OwnerMap

SHOWN = 8  # block rows and block columns that are drawn, the last ones among them


def owner_map(moved: Moved, logical: tuple[int, ...]) -> OwnerMap | None:
    """`logical` is the shape of the result without padding that is cropped later. Owners are -1 where not every program
    was looked at. None for a result without dimensions, or one whose blocks are counted in elements.
    """
    mapping = moved.mapping
    if not mapping.shape or not all(moved.counts) or mapping.by_element:
        return None
    counts = moved.counts if len(moved.counts) > 1 else (1, *moved.counts)
    block = moved.block if len(moved.block) > 1 else (1, *moved.block)
    shape = logical if len(logical) > 1 else (1, *logical)
    rows, columns = shown(counts[-2]), shown(counts[-1])
    return OwnerMap(
        result=mapping.name,
        shape=list(mapping.shape),
        block=list(moved.block),
        rows=rows,
        columns=columns,
        owners=_owners(moved, counts, rows, columns),
        logical_shape=list(logical),
        last_row=(shape[-2] - 1) // block[-2],
        last_column=(shape[-1] - 1) // block[-1],
        rows_in_last=(shape[-2] - 1) % block[-2] + 1,
        columns_in_last=(shape[-1] - 1) % block[-1] + 1,
        blocks=list(counts),
    )


def shown(count: int) -> list[int]:
    """Numbers of the blocks to draw along one dimension: all, or the first ones and the last two."""
    if count <= SHOWN:
        return list(range(count))
    return [*range(SHOWN - 2), count - 2, count - 1]


def _owners(moved: Moved, counts: Sequence[int], rows: list[int], columns: list[int]) -> list[list[int | None]]:
    linear = moved.visits.linear
    if linear is None:
        return [[-1] * len(columns) for _ in rows]
    blocks, programs = np.unique(linear, return_index=True)
    first = dict(zip(blocks.tolist(), programs.tolist(), strict=True))
    wide = counts[-1]
    return [[first.get(row * wide + column) for column in columns] for row in rows]
