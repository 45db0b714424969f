"""From means over shards to the mean over all examples.

A shard's mean is its sum over its count. The mean over everything is the sum of the sums over the sum of the counts, so each
mean goes in with its count: (n1 g1 + n2 g2 + ...) / (n1 + n2 + ...). Leaving the counts out is right only where all shards
hold equally many examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

Array = TypeVar("Array")  # of NumPy or JAX


def count_weighted_mean(means: Sequence[Array], counts: Sequence[int]) -> Array:
    """The mean over all examples; `means[k]` is the mean over the `counts[k]` examples of shard k.

    Arrays of one shape and float dtype give an array of that shape and dtype.

    Raises ValueError without shards, for another number of counts than means, for a shard without examples (it has no
    mean), and for means of different shapes.
    """
    _require_shards(means)
    if len(counts) != len(means):
        raise ValueError(f"one count a shard is needed, got {len(counts)} counts for {len(means)} means")
    if any(isinstance(each, bool) or each != int(each) or each < 1 for each in counts):
        raise ValueError(f"each count must be a whole number of examples from 1, got {list(counts)}")
    weighted = [int(count) * mean for count, mean in zip(counts, means, strict=True)]
    return sum(weighted[1:], start=weighted[0]) / sum(int(each) for each in counts)


def unweighted_mean(means: Sequence[Array]) -> Array:
    """The mean of the shards' means: in general not the mean over all examples. Kept to show by how much it is wrong.

    Arrays of one shape and float dtype give an array of that shape and dtype. Raises ValueError without shards and for
    means of different shapes.
    """
    _require_shards(means)
    return sum(means[1:], start=means[0]) / len(means)


def _require_shards(means: Sequence[Array]) -> None:
    if not means:
        raise ValueError("at least one shard is needed, got none")
    shapes = {tuple(mean.shape) for mean in means}
    if len(shapes) > 1:
        raise ValueError(f"means of all shards must have one shape, got {sorted(shapes)}")
