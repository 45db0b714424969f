"""Why counts matter, shown by the check itself: means of shards joined without and with their counts, judged as steps are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernel_audit.contract import Workload
from kernel_audit.records import Aggregation, StepPartition
from kernel_audit.workload.aggregation import count_weighted_mean, unweighted_mean
from kernel_audit.workload.compare import Comparison, Values
from kernel_audit.workload.diagnosis import explanations

Joined = tuple[float, float, list[str]]


def aggregation_exhibit(workload: Workload, partition: StepPartition, expected: Values) -> Aggregation:
    """Loss and gradient of a partition from the means of its shards, in float64: (n1 g1 + n2 g2 + ...) / (n1 + n2 + ...)
    against (g1 + g2 + ...) / k over the k devices that have examples."""
    there = [device for device, count in enumerate(partition.counts) if count]
    counts = [partition.counts[device] for device in there]

    def means(name: str) -> list[np.ndarray]:
        return [np.asarray(expected[f"shard-{name}"][device]) for device in there]

    names = ["loss", *(f"gradient:{name}" for name in workload.state)]
    unweighted = _judged(workload, partition, expected, {name: unweighted_mean(means(name)) for name in names})
    weighted = _judged(
        workload, partition, expected, {name: count_weighted_mean(means(name), counts) for name in names}
    )
    return Aggregation(
        counts=list(partition.counts),
        unweighted_loss_error=unweighted[0],
        unweighted_gradient_error=unweighted[1],
        unweighted_codes=unweighted[2],
        weighted_loss_error=weighted[0],
        weighted_gradient_error=weighted[1],
        weighted_codes=weighted[2],
    )


def _judged(workload: Workload, partition: StepPartition, expected: Values, joined: Values) -> Joined:
    """A joined mean as the first update of a step with the right new state: its errors, and what the check calls them."""
    observed = {name: np.asarray(value)[None, None] for name, value in joined.items()}
    observed.update({f"state:{name}": np.asarray(expected[f"state:{name}"][:1])[:, None] for name in workload.state})
    of = Comparison(workload, partition, observed, expected)
    errors = of.errors(0)
    codes: Sequence[str] = [] if of.right(0) else explanations(of) or ["step-wrong"]
    return float(errors.loss or 0.0), float(errors.gradient or 0.0), list(codes)
