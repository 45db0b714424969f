"""In which way a step is wrong: its values against what known mistakes would give, worked out from the reference on each shard.

The reference is a mean over examples, so that every mistake in aggregation has a value of its own. Several mistakes may have
the same one on some partition (equal counts hide most of them): all are told, and partitions together decide.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from kernel_audit.workload.aggregation import unweighted_mean
from kernel_audit.workload.compare import Comparison, differing_copies, relative
from kernel_audit.workload.inputs import FINITE

NEAR = 1e-4  # of a value and what a mistake gives: far above rounding, far below what mistakes differ by
REPEATED = "repeated-"


def explanations(of: Comparison) -> list[str]:
    """Codes of the mistakes that would give these values; empty where none is known."""
    prefix = ""
    if not _finite(of, ""):
        if not of.filled() or not _finite(of, f"{FINITE}-"):
            return []
        if of.right(0, f"{FINITE}-"):
            return ["padding-leak"]
        prefix = f"{FINITE}-"  # what lies in the padding enters: look at the values that it leaves
    values = {name: each for name, each in of.observed.items() if _belongs(name, prefix)}
    if differing_copies(values):
        return list(dict.fromkeys(_of_copies(of, prefix)))
    found = list(dict.fromkeys([*_of_mean(of, prefix), *_of_sequence(of), *_of_update(of, prefix)]))
    if not found and prefix:
        return ["padding-counted"]
    if not found and _small(of):
        return ["step-inexact"]
    return found or _of_pairing(of)


def _belongs(name: str, prefix: str) -> bool:
    return name.startswith(prefix) if prefix else name.partition(":")[0] in ("loss", "gradient", "state")


def _finite(of: Comparison, prefix: str) -> bool:
    """Whether the first update is; later ones follow from it."""
    return all(np.all(np.isfinite(each[0])) for name, each in of.observed.items() if _belongs(name, prefix))


def _direction(of: Comparison, prefix: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(copies, wanted, on each shard) of the gradient; of the step taken where the gradient is not among the results."""
    if of.has("gradient", prefix):
        return of.copies("gradient", 0, prefix), of.wanted("gradient"), of.shards("gradient")
    start = of.initial()
    return of.copies("state", 0, prefix) - start, of.wanted("state") - start, of.shards("state") - start


def _near(value: np.ndarray, wanted: np.ndarray) -> bool:
    error = relative(np.atleast_1d(value)[None], np.atleast_1d(wanted))
    return error is not None and error <= NEAR


def _small(of: Comparison) -> bool:
    """Whether every error is one that rounding could make: above the bound, and far below what a mistake gives."""
    for update in range(of.updates):
        errors = of.errors(update)
        told = [errors.loss, errors.state, *([errors.gradient] if of.has("gradient") else [])]
        if any(each is None or each > NEAR for each in told):
            return False
    return True


# ---------------------------------------------------------------- copies that differ


def _of_copies(of: Comparison, prefix: str) -> Iterator[str]:
    if _apart_along_some_axes(of, prefix):
        yield "reduced-over-one-axis"
        return
    start = of.initial()
    pairs = [(*_direction(of, prefix),)]
    pairs.append((of.copies("state", 0, prefix) - start, of.wanted("state") - start, of.shards("state") - start))
    pairs.append((of.losses(0, prefix)[:, None], of.expected["loss"][:1], of.expected["shard-loss"][:, None]))
    words = ("gradient-of-the-local-batch", "gradient-of-the-local-batch", "loss-from-one-shard")
    for (copies, wanted, shards), word in zip(pairs, words, strict=True):
        if len({each.tobytes() for each in copies}) > 1:
            yield from _by_copy(of, copies, wanted, shards, word)
    yield "copies-differ"


def _by_copy(of: Comparison, copies: np.ndarray, wanted: np.ndarray, shards: np.ndarray, word: str) -> Iterator[str]:
    """Each device's copy against what its own examples give."""
    counts = of.partition.counts
    there = [device for device, count in enumerate(counts) if count and len(copies) == len(counts)]
    if not there:
        return
    total = sum(counts)
    if all(_near(copies[k], shards[k]) for k in there):
        yield word
    if all(_near(copies[k], counts[k] / total * shards[k]) for k in there):
        yield "missing-reduction"
    if all(_near(copies[k], counts[k] * shards[k]) for k in there):
        yield "missing-reduction"
    if all(_near(copies[k], total / counts[k] * wanted) for k in there):
        yield "count-dropped"


def _apart_along_some_axes(of: Comparison, prefix: str) -> bool:
    """Whether copies are the same along one axis of the mesh and not along another."""
    sizes = list(of.partition.mesh.values())
    if sum(size > 1 for size in sizes) < 2:
        return False
    copies, _, _ = _direction(of, prefix)
    if len(copies) != math.prod(sizes):
        return False
    grid = copies.reshape(*sizes, -1)
    same = [bool(np.all(grid == np.take(grid, [0], axis))) for axis, size in enumerate(sizes) if size > 1]
    return any(same) and not all(same)


# ---------------------------------------------------------------- one value on all devices


def _of_mean(of: Comparison, prefix: str) -> Iterator[str]:
    copies, wanted, shards = _direction(of, prefix)
    value = copies[0]
    if _near(value, wanted):
        yield from _of_loss(of, prefix)
        return
    there = [each for each, count in zip(shards, of.partition.counts, strict=True) if count]
    for mean in (unweighted_mean(there), unweighted_mean(list(shards))):
        if _near(value, mean):
            yield "unweighted-means"
    yield from _of_ratio(of, value, wanted)
    if any(_near(value, each) for each in there):
        yield "gradient-of-the-local-batch"


def _of_ratio(of: Comparison, value: np.ndarray, wanted: np.ndarray) -> Iterator[str]:
    """A value that is the right one times a factor: which factor says what happened."""
    size = float(np.dot(wanted, wanted))
    ratio = float(np.dot(value, wanted)) / size if size else 0.0
    if ratio == 0 or not _near(value, ratio * wanted):
        return
    partition = of.partition
    total, rows = partition.examples, partition.rows * partition.devices
    axes = [math.prod(partition.mesh.values()), *partition.mesh.values()]
    factors = {
        "sum-for-mean": [total],
        "reduced-twice": [each for each in axes if each > 1],
        "padding-counted": [total / rows],
        "count-dropped": [
            *(total / count for count in partition.counts if count),
            *(total / (total - count) for count in partition.counts if 0 < count < total),
        ],
    }
    for code, values in factors.items():
        if any(abs(ratio / each - 1) <= NEAR and abs(each - 1) > NEAR for each in values):
            yield code


def _of_loss(of: Comparison, prefix: str) -> Iterator[str]:
    """The loss alone is wrong."""
    value, wanted = of.losses(0, prefix)[:1], np.atleast_1d(of.expected["loss"][0])
    if _near(value, wanted):
        return
    there = [each for each, count in zip(of.expected["shard-loss"], of.partition.counts, strict=True) if count]
    if any(_near(value, each) for each in there):
        yield "loss-from-one-shard"
    if _near(value, np.mean(there)):
        yield "unweighted-means"
    yield from _of_ratio(of, value, wanted)


# ---------------------------------------------------------------- over the updates


def _of_sequence(of: Comparison) -> Iterator[str]:
    """The same gradient again while the weights have moved, or the one of the update before."""
    if of.updates < 3 or not of.has("gradient"):
        return
    gradients = [of.copies("gradient", update)[0] for update in range(of.updates)]
    states = [of.copies("state", update)[0] for update in range(of.updates)]
    moved = all(not np.array_equal(one, other) for one, other in itertools.pairwise(states))
    constant = all(np.array_equal(gradients[0], each) for each in gradients[1:])
    lags = not any(_near(gradients[k], of.wanted("gradient", k)) for k in range(1, of.updates)) and _near(
        gradients[1], of.wanted("gradient", 0)
    )
    if moved and (constant or lags):
        yield "stale-weights"


def _of_update(of: Comparison, prefix: str) -> Iterator[str]:
    """The gradient is right and the step that is taken is not."""
    if not of.has("gradient", prefix):
        return
    start = of.initial()
    taken, wanted = of.copies("state", 0, prefix)[0] - start, of.wanted("state") - start
    if not _near(of.copies("gradient", 0, prefix)[0], of.wanted("gradient")) or _near(taken, wanted):
        return
    bound = NEAR * float(np.max(np.abs(wanted)))
    same, turned = np.abs(taken - wanted) <= bound, np.abs(taken + wanted) <= bound
    if np.all(same | turned) and np.any(turned & ~same):
        yield "update-of-wrong-sign"
    else:
        yield "update-wrong"


def _of_pairing(of: Comparison) -> list[str]:
    """Wrong, and right where a device's examples are all the same: they are not what belongs together."""
    if max(of.partition.counts) > 1 and f"{REPEATED}loss" in of.observed and of.right(0, REPEATED):
        return ["examples-mispaired"]
    return []
